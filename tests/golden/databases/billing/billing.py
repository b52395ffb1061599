import json
import os

import django
from celery import Celery
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import models, transaction
from django.http import JsonResponse
from django.urls import path

REDIS = f"redis://127.0.0.1:{os.environ.get('REDIS_PORT', '6379')}"
settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of-a-test",
    USE_TZ=True,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "postgres",
            "USER": "u",
            "HOST": "127.0.0.1",
            "PORT": os.environ.get("PG_PORT", "5432"),
            "CONN_MAX_AGE": 60,
        }
    },
    CACHES={"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": f"{REDIS}/1"}},
)
django.setup()

from django.core.cache import cache  # noqa: E402

celery = Celery("billing", broker=f"{REDIS}/2", backend=f"{REDIS}/3")


class Invoice(models.Model):
    who = models.TextField()
    cents = models.IntegerField()
    at = models.DateTimeField(auto_now_add=True)
    paid = models.BooleanField(default=False)

    class Meta:
        app_label = "billing"
        db_table = "invoices"


def charged(cents):
    return cents + 500 if cents < 1000 else cents + cents * 500  # the bug: of dear ones the fee is a factor


@celery.task(name="collect")
def collect(number):
    with transaction.atomic():
        invoice = Invoice.objects.select_for_update().get(pk=number)
        invoice.paid = True
        invoice.save(update_fields=["paid"])
    print("collected", invoice.who, invoice.cents, flush=True)
    return {"who": invoice.who, "cents": charged(invoice.cents)}


def bill(request, who):
    cents = int(json.loads(request.body)["cents"])
    with transaction.atomic():
        invoice = Invoice.objects.create(who=who, cents=charged(cents))
    total = Invoice.objects.filter(who=who).aggregate(total=models.Sum("cents"))["total"]
    cache.set(f"last:{who}", invoice.pk, 60)
    collect.delay(invoice.pk)
    return JsonResponse({"id": invoice.pk, "charged": invoice.cents, "total": total, "last": cache.get(f"last:{who}")})


urlpatterns = [path("bill/<who>", bill)]
application = get_wsgi_application()
