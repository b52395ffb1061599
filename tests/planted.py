"""Fake secrets, spelled as services publish them and never from a detector's pattern.

A credential is a sentence of a small language: `{b62:36}` stands for 36 characters of base 62, and so on; `«…»` holds
the value where what surrounds it is what tells it. No literal here is a whole token: a host's scanner finds nothing.
"""

from __future__ import annotations

import base64
import random
import re
import string
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

ALPHABETS = {
    "b62": string.ascii_letters + string.digits,
    "url": f"{string.ascii_letters}{string.digits}_-",
    "b64": f"{string.ascii_letters}{string.digits}+/",
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "low": string.ascii_lowercase + string.digits,
    "UP": string.ascii_uppercase + string.digits,
    "b32": "abcdefghijklmnopqrstuvwxyz234567",
    "B32": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "d": string.digits,
    "abc": string.ascii_letters,
    "mark": f"{string.ascii_letters}{string.digits}!@#%^*_+-=",
}

CREDENTIALS: dict[str, tuple[str, ...]] = {
    "anthropic_key": ("sk-ant-api03-{url:93}AA", "sk-ant-admin01-{url:93}AA", "sk-ant-oat01-{url:86}"),
    "openrouter_key": ("sk-or-v1-{hex:64}",),
    "langfuse_key": ("sk-lf-{uuid}",),
    "helicone_key": ("sk-helicone-{low:7}-{low:7}-{low:7}-{low:7}",),
    "openai_key": ("sk-{b62:48}", "sk-proj-{url:124}", "sk-svcacct-{url:120}", "sk-admin-{url:100}", "sk-{hex:32}"),
    "google_ai_key": ("AQ.Ab8RN6{url:44}",),
    "huggingface_token": ("hf_{b62:34}", "api_org_{b62:34}"),
    "groq_key": ("gsk_{b62:52}",),
    "xai_key": ("xai-{b62:80}",),
    "perplexity_key": ("pplx-{b62:48}",),
    "replicate_token": ("r8_{b62:37}",),
    "nvidia_key": ("nvapi-{url:64}",),
    "cerebras_key": ("csk-{low:48}",),
    "fireworks_key": ("fw_{b62:24}",),
    "together_key": ("tgp_v1_{url:43}",),
    "tavily_key": ("tvly-{b62:32}", "tvly-dev-{b62:32}"),
    "firecrawl_key": ("fc-{hex:32}",),
    "e2b_key": ("e2b_{hex:40}",),
    "jina_key": ("jina_{hex:32}{url:28}",),
    "voyage_key": ("pa-{url:42}a",),
    "pinecone_key": ("pcsk_{b62:6}_{b62:63}",),
    "llama_cloud_key": ("llx-{b62:48}",),
    "elevenlabs_key": ("sk_{hex:48}",),
    "cartesia_key": ("sk_car_{b62:22}",),
    "wandb_key": ("wandb_v1_{b62:27}_{b62:50}",),
    "runpod_key": ("rpa_{UP:40}{low:6}",),
    "anyscale_key": ("esecret_{b62:26}", "aph0_{b62:40}"),
    "apify_token": ("apify_api_{b62:36}",),
    "browserbase_key": ("bb_live_{url:26}x",),
    "context7_key": ("ctx7sk-{uuid}",),
    "mem0_key": ("m0-{b62:40}",),
    "modal_token": ("ak-{b62:22}", "as-{b62:22}"),
    "arize_key": ("ak-{uuid}-{url:32}",),
    "nomic_key": ("nk-{url:42}z",),
    "friendli_token": ("flp_{b62:48}",),
    "langsmith_key": ("lsv2_pt_{hex:32}_{hex:10}", "lsv2_sk_{hex:32}_{hex:10}", "ls__{hex:32}"),
    "logfire_token": ("pylf_v1_us_{b62:43}", "pylf_v1_eu_{b62:43}"),
    "posthog_key": ("phx_{b62:43}", "phs_{b62:43}"),
    "cursor_key": ("key_{hex:64}",),
    "dify_key": ("app-{b62:24}", "dataset-{b62:24}"),
    "fastgpt_key": ("fastgpt-{b62:48}",),
    "coze_token": ("pat_{b62:64}",),
    "you_key": ("ydc-sk-{hex:16}-{hex:32}",),
    "daytona_key": ("dtn_{hex:64}",),
    "aws_access_key": ("AKIA{B32:16}", "ASIA{B32:16}"),
    "aws_secret_key": (
        "AWS_SECRET_ACCESS_KEY=«{b64:39}Z»",
        "aws_secret_access_key = «{b64:39}q»",
        '"SecretAccessKey": "«{b64:39}7»"',
    ),
    "aws_session_token": ("IQoJb3JpZ2luX2Vj{b64:340}", "FwoGZXIvYXdzE{b64:280}"),
    "aws_bedrock_key": ("ABSKQmVkcm9ja0FQSUtleS{b62:100}=", "bedrock-api-key-{b62:160}"),
    "google_api_key": ("AIzaSy{url:33}",),
    "google_oauth": ("ya29.a0{url:160}",),
    "google_refresh_token": ("1//0{url:96}",),
    "google_client_secret": ("GOCSPX-{url:28}",),
    "azure_storage_key": (
        "DefaultEndpointsProtocol=https;AccountName=files01;AccountKey=«{b64:86}==»;EndpointSuffix=core.windows.net",
        "Endpoint=sb://bus.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{b64:43}=»",
    ),
    "azure_client_secret": ("{b62:3}8Q~{b62:34}",),
    "azure_devops_token": ("{b62:76}AZDO{b62:4}",),
    "azure_ai_key": ("{b62:52}JQQJ99{b62:26}",),
    "azure_function_key": ("{url:43}aAzFu{url:7}=",),
    "azure_search_key": ("{b62:42}AzSe{b62:6}",),
    "azure_service_key": ("{b64:76}+ASt{b64:6}==", "{b64:76}ACDb{b62:6}==", "{b64:33}+AEh{b64:6}="),
    "digitalocean_token": ("dop_v1_{hex:64}", "doo_v1_{hex:64}", "dor_v1_{hex:64}"),
    "cloudflare_token": ("cfut_{b62:48}", "cfk_{b62:48}", "cfat_{b62:48}"),
    "cloudflare_origin_key": ("v1.0-{hex:24}-{hex:146}",),
    "alibaba_access_key": ("LTAI5t{b62:18}",),
    "tencent_secret_id": ("AKID{b62:32}",),
    "yandex_cloud_key": ("AQVN{url:36}",),
    "heroku_key": ("HRKU-{uuid}", "HRKU-AA{url:58}"),
    "fly_token": ("fm2_{b64:160}", "fo1_{url:43}"),
    "render_key": ("rnd_{b62:28}",),
    "vercel_token": ("vcp_{b62:56}", "vci_{b62:56}"),
    "vercel_blob_token": ("vercel_blob_rw_{b62:16}_{b62:30}",),
    "netlify_token": ("nfp_{b62:36}",),
    "doppler_token": ("dp.pt.{b62:43}", "dp.st.dev_personal.{b62:40}"),
    "vault_token": ("hvs.{url:90}", "hvb.{url:130}", "hvs.CAES{url:90}"),
    "terraform_token": ("{b62:14}.atlasv1.{url:67}",),
    "pulumi_token": ("pul-{hex:40}",),
    "onepassword_token": ("ops_eyJ{url:300}",),
    "onepassword_secret_key": (
        "A3-{UP:6}-{UP:6}-{UP:5}-{UP:5}-{UP:5}-{UP:5}",
        "A3-{UP:6}-{UP:11}-{UP:5}-{UP:5}-{UP:5}",
    ),
    "tailscale_key": ("tskey-auth-{b62:12}CNTRL-{b62:32}", "tskey-api-{b62:17}-{b62:32}"),
    "akamai_token": ("akab-{low:16}-{low:16}",),
    "openshift_token": ("sha256~{url:43}",),
    "laravel_app_key": ("APP_KEY=«base64:{b64:43}=»",),
    "django_secret_key": ("django-insecure-{mark:50}",),
    "supabase_token": ("sbp_{hex:40}", "sb_secret_{url:31}a"),
    "github_token": ("ghp_{b62:36}", "gho_{b62:36}", "ghu_{b62:36}", "ghs_{b62:36}", "ghr_{b62:76}"),
    "github_pat": ("github_pat_11{UP:20}_{b62:59}",),
    "gitlab_token": ("glpat-{url:20}", "gldt-{url:20}", "glrt-{url:20}", "glcbt-{b62:2}_{url:20}", "glptt-{hex:40}"),
    "gitlab_runner_token": ("GR1348941{url:20}",),
    "bitbucket_token": ("ATBB{b62:24}{HEX:8}",),
    "atlassian_token": ("ATATT3xFfGF0{url:170}={HEX:8}",),
    "npm_token": ("npm_{b62:36}",),
    "pypi_token": ("pypi-AgEIcHlwaS5vcmc{url:150}",),
    "rubygems_key": ("rubygems_{hex:48}",),
    "crates_token": ("cio{b62:32}",),
    "nuget_key": ("oy2{low:43}",),
    "clojars_token": ("CLOJARS_{hex:60}",),
    "docker_token": ("dckr_pat_{url:27}", "dckr_oat_{url:32}"),
    "artifactory_token": ("AKCp{b62:69}", "cmVmdGtu{b62:56}"),
    "sentry_token": ("sntryu_{hex:64}", "sntrys_eyJpYXQiO{b62:120}_{b64:43}"),
    "sonarqube_token": ("sqp_{hex:40}", "squ_{hex:40}", "sqa_{hex:40}"),
    "circleci_token": ("CCIPAT_{b62:22}_{hex:40}", "CCIPRJ_{b62:22}_{hex:40}"),
    "buildkite_token": ("bkua_{hex:40}",),
    "harness_token": ("pat.{url:22}.{hex:24}.{b62:20}", "sat.{url:22}.{hex:24}.{b62:20}"),
    "snyk_token": ("snyk_uat.{hex:8}.{url:60}",),
    "postman_key": ("PMAK-{hex:24}-{hex:34}",),
    "sourcegraph_token": ("sgp_{hex:16}_{hex:40}", "sgp_{hex:40}"),
    "linear_key": ("lin_api_{b62:40}", "lin_oauth_{hex:64}"),
    "figma_token": ("figd_{url:40}",),
    "notion_token": ("ntn_{d:11}{b62:35}", "secret_{b62:43}"),
    "airtable_token": ("AIRTABLE_TOKEN=«pat{b62:14}.{hex:64}»", "airtable: «pat{b62:14}.{hex:64}»"),
    "asana_token": ("1/{d:16}:{hex:32}", "2/{d:16}/{d:16}:{hex:32}"),
    "clickup_token": ("pk_{d:8}_{UP:32}",),
    "readme_key": ("rdme_{low:70}",),
    "newrelic_key": ("NRAK-{UP:27}", "NRII-{url:32}"),
    "grafana_token": ("glsa_{b62:32}_{hex:8}", "glc_eyJvIjoi{b62:120}=="),
    "dynatrace_token": ("dt0c01.{UP:24}.{UP:64}", "dt0s16.{UP:24}.{UP:64}"),
    "honeycomb_key": ("hcaik_{low:58}",),
    "contentful_token": ("CFPAT-{url:43}",),
    "prefect_key": ("pnu_{b62:36}",),
    "dbt_token": ("dbtc_{url:40}", "dbtu_{url:40}"),
    "jetbrains_token": ("perm:{b64:20}=.{b64:20}.{b62:30}",),
    "scalingo_token": ("tk-us-{url:48}",),
    "ory_token": ("ory_at_{url:43}.{url:43}", "ory_pat_{b62:32}"),
    "unkey_key": ("unkey_{b62:24}",),
    "inngest_key": ("signkey-prod-{hex:64}",),
    "trigger_key": ("tr_dev_{b62:20}", "tr_prod_{b62:20}"),
    "elastic_key": ("essu_{b62:80}==",),
    "stripe_key": ("sk_live_{b62:24}", "rk_live_{b62:99}", "sk_test_{b62:99}"),
    "stripe_webhook": ("whsec_{b62:32}",),
    "square_token": ("EAAAl{url:59}", "sq0atp-{url:22}", "sq0csp-{url:43}"),
    "braintree_token": ("access_token$production${low:16}${hex:32}",),
    "adyen_key": ("AQEyhm{b62:60}-{b62:44}=-{b62:16}",),
    "razorpay_key": ("rzp_live_{b62:14}", "rzp_test_{b62:14}"),
    "plaid_token": ("access-production-{uuid}", "access-sandbox-{uuid}"),
    "flutterwave_key": ("FLWSECK-{hex:32}-X", "FLWSECK_TEST-{hex:32}-X"),
    "mollie_key": ("live_{b62:30}",),
    "gocardless_token": ("live_{url:39}q",),
    "shopify_token": ("shpat_{hex:32}", "shpss_{hex:32}", "shpca_{hex:32}"),
    "paddle_key": ("pdl_live_apikey_01{low:24}_{b62:22}_{b62:3}",),
    "mercadopago_token": ("APP_USR-{d:16}-{d:6}-{hex:32}-{d:9}",),
    "klarna_key": ("klarna_live_api_{b64:60}",),
    "duffel_token": ("duffel_live_{url:43}",),
    "easypost_key": ("EZAK{b62:54}", "EZTK{b62:54}"),
    "shippo_token": ("shippo_live_{hex:40}",),
    "sumup_key": ("sup_sk_{b62:32}",),
    "xendit_key": ("xnd_production_{b62:48}",),
    "midtrans_key": ("Mid-server-{url:24}", "SB-Mid-server-{url:24}"),
    "omise_key": ("skey_{low:19}", "skey_test_{low:19}"),
    "polar_token": ("polar_oat_{b62:43}",),
    "checkout_key": ("sk_sbox_{b32:27}",),
    "slack_token": ("xoxb-{d:12}-{d:13}-{b62:24}", "xoxp-{d:12}-{d:12}-{d:13}-{hex:32}", "xoxe.xoxp-1-{b62:150}"),
    "slack_app_token": ("xapp-1-A{UP:10}-{d:13}-{hex:64}",),
    "slack_webhook": ("https://hooks.slack.com/services/«T{UP:8}/B{UP:10}/{b62:24}»",),
    "discord_webhook": ("https://discord.com/api/webhooks/«{d:19}/{url:68}»",),
    "discord_token": (
        "Authorization: Bot «MT{b62:22}.{url:6}.{url:38}»",
        "DISCORD_TOKEN=«Nz{b62:22}.{url:6}.{url:27}»",
    ),
    "teams_webhook": ("https://contoso.webhook.office.com/«webhookb2/{uuid}@{uuid}/IncomingWebhook/{hex:32}/{uuid}»",),
    "zapier_webhook": ("https://hooks.zapier.com/hooks/catch/«{d:7}/{low:7}»",),
    "make_webhook": ("https://hook.eu1.make.com/«{low:32}»",),
    "ifttt_webhook": ("https://maker.ifttt.com/trigger/door/with/key/«{url:42}x»",),
    "telegram_bot_token": ("{d:10}:AA{url:33}",),
    "twilio_key": ("SK{hex:32}",),
    "sendgrid_key": ("SG.{url:22}.{url:43}",),
    "mailgun_key": ("key-{hex:32}",),
    "mailchimp_key": ("{hex:32}-us21",),
    "resend_key": ("RESEND_API_KEY=«re_{b62:8}_{b62:24}»",),
    "brevo_key": ("xkeysib-{hex:64}-{b62:16}",),
    "klaviyo_key": ("pk_{hex:34}",),
    "hubspot_token": ("pat-na1-{uuid}", "pat-eu1-{uuid}"),
    "intercom_token": ("dG9rO{b62:55}=",),
    "meta_token": ("EAAC{b62:180}",),
    "instagram_token": ("IGQVJ{url:150}",),
    "x_bearer_token": ("AAAAAAAAAAAAAAAAAAAAAM{b62:5}AAAAAAA{b62:20}%2B{b62:20}%3D{b62:50}",),
    "dropbox_token": ("sl.B{url:136}", "sl.u.A{url:300}"),
    "salesforce_token": ("00D{b62:12}!{b62:96}",),
    "onesignal_key": ("os_v2_app_{b32:103}",),
    "firebase_key": ("AAAA{url:7}:APA91b{url:134}",),
    "twitch_token": ("oauth:{low:30}",),
    "vk_token": ("vk1.a.{url:200}",),
    "matrix_token": ("syt_{b62:14}_{abc:20}_{b62:6}",),
    "frameio_token": ("fio-u-{url:64}",),
    "typeform_token": ("tfp_{b62:44}_{b62:14}",),
    "mapbox_token": ("sk.eyJ1Ijoi{b62:70}.{b62:22}",),
    "okta_token": ("Authorization: SSWS «00{url:40}»",),
    "url_password": (
        "postgres://orders:«{mark:14}»@db.internal:5432/orders",
        "mongodb+srv://app:«{b62:18}»@cluster0.ab12c.mongodb.net/?retryWrites=true",
        "redis://:«{b62:20}»@cache:6379/0",
        "amqp://worker:«{b62:10}»@rabbit/vhost",
        "mysql+pymysql://root:«{b62:9}»@10.0.4.7/shop",
        "https://deploy:«{b62:16}»@git.example.org/team/app.git",
    ),
    "connection_password": (
        "Server=tcp:db.example.net,1433;Database=shop;User ID=sa;Password=«{mark:14}»;Encrypt=True;",
        "Driver={{ODBC Driver 18 for SQL Server}};Server=db;Uid=app;Pwd=«{b62:12}»;",
        "host=db port=5432 dbname=app user=app password=«{b62:14}»",
        "jdbc:oracle:thin:scott/«{b62:10}»@db.example.net:1521/orcl",
    ),
    "aiven_password": ("AVNS_{url:18}x",),
    "planetscale_token": ("pscale_tkn_{url:43}", "pscale_pw_{url:43}"),
    "neon_key": ("napi_{low:64}",),
    "neon_password": ("npg_{b62:14}9",),
    "databricks_token": ("dapi{hex:32}", "dapi{hex:32}-2"),
    "mongodb_atlas_secret": ("mdb_sa_sk_{url:40}",),
    "xata_key": ("xau_{b62:32}",),
    "cockroach_key": ("CCDB1_{b62:22}_{b62:40}",),
    "tinybird_token": ("p.eyJ1Ijog{url:80}.{url:43}",),
    "private_key": (
        "{pem:RSA PRIVATE KEY}",
        "{pem:PRIVATE KEY}",
        "{pem:OPENSSH PRIVATE KEY}",
        "{pem:EC PRIVATE KEY}",
        "{putty}",
        "{pgp}",
    ),
    "age_key": ("AGE-SECRET-KEY-1{UP:58}",),
    "wireguard_key": ("PrivateKey = «{b64:43}=»",),
    "jwt": ("{jwt}",),
    "authorization": (
        "Authorization: Bearer «{b62:40}»",
        'curl -H "authorization: bearer «{url:60}x»"',
        "Authorization: Basic «{basic}»",
        "'Authorization': 'Token «{hex:40}»'",
    ),
    "cookie": (
        "Cookie: «sessionid={b62:32}; csrftoken={b62:32}»",
        "Set-Cookie: «connect.sid=s%3A{b62:32}.{b62:30}; Path=/; HttpOnly»",
    ),
    "url_secret": (
        "https://api.example.com/v1/items?api_key=«{b62:32}»&page=2",
        "https://files.example.com/a.pdf?sv=2024-01-01&sig=«{b62:40}%3D»",
        "https://bucket.s3.amazonaws.com/k?X-Amz-Signature=«{hex:64}»",
        "GET /callback?code=«4%2F0A{url:60}x»&scope=openid",
        "https://host.example/login?user=a&password=«{b62:9}»",
        "https://maps.example.com/geo?key=«{url:38}1»",
    ),
    "command_secret": (
        "curl -u admin:«{mark:12}7» https://example.com",
        "mysql -h db -u root -p«{b62:10}» shop",
        "sshpass -p «{b62:10}» ssh root@10.0.0.9",
        "./deploy --password «{b62:12}1a» --yes",
    ),
    "assignment": (
        "DB_PASSWORD=«{mark:14}1a»",
        "password: «{b62:12}7k»",
        "passwd = '«{mark:12}4d»'",
        '"client_secret": "«{b62:32}»"',
        "client_secret=«{url:40}2x»",
        "export STRIPE_API_KEY=«{hex:32}»",
        "WANDB_API_KEY=«{hex:40}»",
        "api key is «{b62:32}»",
        "The password is «{b62:10}9z».",
        "my Passwort lautet «{b62:10}9z»",
        "auth_token: «{hex:32}»",
        "X-Api-Key: «{b62:40}»",
        "const apiKey = '«{url:36}3b»';",
        "secret: «{b64:42}8c»",
        "access_token=«{b62:64}»",
        "{{'refresh_token': '«{url:60}5d»'}}",
        "TWILIO_AUTH_TOKEN=«{hex:32}»",
    ),
}


class Planted(NamedTuple):
    """A fake value and the text that holds it."""

    name: str
    text: str
    value: str
    """What must not be left."""


def drawn(chance: random.Random, alphabet: str, count: int) -> str:
    """Draw characters, digits and letters among them as in any real token."""
    signs = ALPHABETS[alphabet]
    while True:
        made = "".join(chance.choice(signs) for _ in range(count))
        if count < 8 or alphabet in {"d", "abc"}:
            return made
        if any(map(str.isdigit, made)) and any(map(str.isalpha, made)) and made[0].isalnum() and made[-1].isalnum():
            return made


def _lines(chance: random.Random, count: int) -> str:
    return "\n".join(drawn(chance, "b64", 64) for _ in range(count))


def _jwt(chance: random.Random) -> str:
    def part(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    kind = chance.choice(["HS256", "RS256", "ES256"])
    subject = drawn(chance, "d", 10)
    head, body = part(f'{{"alg":"{kind}","typ":"JWT"}}'), part(f'{{"sub":"{subject}","iat":1516239022}}')
    return f"{head}.{body}.{drawn(chance, 'url', 43)}"


def _special(chance: random.Random, name: str) -> str:
    if name == "uuid":
        return str(uuid.UUID(int=chance.getrandbits(128), version=4))
    if name == "jwt":
        return _jwt(chance)
    if name == "basic":
        return base64.b64encode(f"user:{drawn(chance, 'mark', 12)}".encode()).decode()
    if name == "putty":
        head = "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: k\nPublic-Lines: 2\n"
        return (
            f"{head}{_lines(chance, 2)}\nPrivate-Lines: 1\n«{drawn(chance, 'b64', 44)}»\nPrivate-MAC:"
            f" {drawn(chance, 'hex', 64)}"
        )
    if name == "pgp":
        edge = "PGP PRIVATE KEY BLOCK-----"
        return f"-----BEGIN {edge}\nVersion: GnuPG v2\n\n{_lines(chance, 8)}\n=ab12\n-----END {edge}"
    kind = name.removeprefix("pem:")
    return f"-----BEGIN {kind}-----\n{_lines(chance, 6)}\n-----END {kind}-----"


def made(name: str, spelled: str, chance: random.Random) -> Planted:
    """Make a value of a sentence of the language."""

    def put(found: re.Match[str]) -> str:
        alphabet, _, count = found[1].partition(":")
        return drawn(chance, alphabet, int(count)) if alphabet in ALPHABETS else _special(chance, found[1])

    text = re.sub(r"\{([a-zA-Z0-9]+(?::[A-Za-z0-9 ]+)?)\}", put, spelled.replace("{{", "\x01").replace("}}", "\x02"))
    text = text.replace("\x01", "{").replace("\x02", "}")
    value = text[text.index("«") + 1 : text.index("»")] if "«" in text else text
    return Planted(name, text.replace("«", "").replace("»", ""), value)


def credentials(chance: random.Random, each: int = 1) -> Iterator[Planted]:
    """Give `each` fake credentials of every spelling of every class."""
    for name, spellings in CREDENTIALS.items():
        for spelled in spellings:
            for _ in range(each):
                yield made(name, spelled, chance)


Maker = Callable[[random.Random], str]
