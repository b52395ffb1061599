"""Keys of payment and commerce services."""

from __future__ import annotations

from reenact.contracts.detector import ENDS, Detector, credential

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _drawn(value: str) -> bool:
    """Tell a key from a name in a program: it mixes digits and letters."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value.rpartition("_")[2]))


DETECTORS: tuple[Detector, ...] = (
    credential(
        "stripe_key",
        "k_live_|k_test_|k_prod_|k_org_",
        rf"[srp]k_(?:live|test|prod|org_(?:live|test))_[A-Za-z0-9]{{16,247}}{ENDS}",
        before=1,
    ),
    credential("stripe_webhook", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,128}"),
    credential(
        "square_token",
        "EAAA|sq0atp-|sq0csp-",
        r"(?:(?<![+/])EAAA[A-Za-z0-9_\-]{60}(?![A-Za-z0-9_\-+/=])|sq0(?:atp-[A-Za-z0-9_\-]{22}"
        r"|csp-[A-Za-z0-9_\-]{43}))",
        order=45,
    ),
    credential(
        "braintree_token",
        "access_token$|access_token%24",
        r"access_token(?:\$|%24)(?:production|sandbox)(?:\$|%24)[0-9a-z]{16}(?:\$|%24)[0-9a-f]{32}",
        order=40,
    ),
    credential("adyen_key", "AQE", r"AQE[a-z]hm[^\s\"'<>\\]{40,300}"),
    credential("razorpay_key", "rzp_live_|rzp_test_", rf"rzp_(?:live|test)_[A-Za-z0-9]{{14,24}}{ENDS}"),
    credential("plaid_token", "access-", rf"access-(?:sandbox|production|development)-{_UUID}"),
    credential("flutterwave_key", "FLWSECK", r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,64}(?:-X)?"),
    credential("mollie_key", "live_", rf"live_[A-Za-z0-9]{{30}}{ENDS}", check=_drawn, order=55),
    credential("gocardless_token", "live_", rf"live_[A-Za-z0-9_\-]{{40}}{ENDS}", check=_drawn, order=55),
    credential(
        "shopify_token",
        "shpat_|shpss_|shpca_|shppa_|shprt_|shpua_|shptka_",
        rf"shp(?:at|ss|ca|pa|rt|ua|tka)_[0-9a-fA-F]{{32}}{ENDS}",
    ),
    credential("paddle_key", "pdl_live_apikey_|pdl_sdbx_apikey_", r"pdl_(?:live|sdbx)_apikey_[A-Za-z0-9_]{40,80}"),
    credential(
        "mercadopago_token",
        "APP_USR-|TEST-",
        rf"(?:APP_USR|TEST)-[0-9]{{10,20}}-[0-9]{{6}}-[0-9a-f]{{32}}(?:__[A-Z_]{{5}}__)?-[0-9]{{5,12}}{ENDS}",
    ),
    credential(
        "klarna_key", "klarna_live_api_|klarna_test_api_", r"klarna_(?:live|test)_api_[A-Za-z0-9+/=._\-]{24,200}"
    ),
    credential("duffel_token", "duffel_live_|duffel_test_", r"duffel_(?:live|test)_[A-Za-z0-9_\-=]{40,48}"),
    credential("easypost_key", "EZAK|EZTK", rf"EZ[AT]K[A-Za-z0-9]{{54}}{ENDS}"),
    credential("shippo_token", "shippo_live_|shippo_test_", rf"shippo_(?:live|test)_[0-9a-f]{{40}}{ENDS}"),
    credential("sumup_key", "sup_sk_", rf"sup_sk_[A-Za-z0-9]{{20,64}}{ENDS}"),
    credential(
        "xendit_key", "xnd_production_|xnd_development_", rf"xnd_(?:production|development)_[A-Za-z0-9]{{40,80}}{ENDS}"
    ),
    credential("midtrans_key", "Mid-server-", r"(?:SB-)?Mid-server-[A-Za-z0-9_\-]{20,36}", before=3),
    credential("omise_key", "skey_", rf"skey_(?:test_)?[a-z0-9]{{17,24}}{ENDS}", check=_drawn),
    credential(
        "polar_token",
        "polar_oat_|polar_pat_|polar_at_|polar_rt_",
        rf"polar_(?:oat|pat|at|rt)_(?:u_)?[A-Za-z0-9]{{36,64}}{ENDS}",
    ),
    credential("checkout_key", "sk_sbox_", r"sk_sbox_[a-z0-9*#$=]{24,32}"),
)
