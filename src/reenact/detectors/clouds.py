"""Keys of clouds, hosts, networks and vaults: by the prefixes and marks that these services document."""

from __future__ import annotations

from reenact.contracts.detector import ENDS, Detector, credential

_BASE_64 = r"[A-Za-z0-9+/]"
_SEPARATED = r"[\"'\\]{0,3}\s{0,3}[:=]\s{0,3}[\"'\\]{0,3}"

DETECTORS: tuple[Detector, ...] = (
    credential("aws_access_key", "AKIA|ASIA|ABIA|ACCA", rf"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{{16}}{ENDS}"),
    credential(
        "aws_secret_key",
        "secret_access_key|secretaccesskey|secret-access-key|aws_secret_key",
        rf"(?:secret_access_key|secretaccesskey|secret-access-key|aws_secret_key){_SEPARATED}(?P<secret>{_BASE_64}{{40}})(?![A-Za-z0-9+/=])",
        any_case=True,
        order=60,
    ),
    credential(
        "aws_secret_key",
        "AKIA|ASIA",
        rf"A[KS]IA[A-Z0-9]{{16}}[\"']?[,:;|\s]{{1,3}}[\"']?(?P<secret>{_BASE_64}{{40}})(?![A-Za-z0-9+/=])",
        order=60,
        check=lambda value: any(map(str.isdigit, value)) and any(map(str.islower, value)),
    ),
    credential(
        "aws_session_token",
        "IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz",
        r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz)[A-Za-z0-9+/=%]{60,2048}",
        after=2200,
        order=45,
    ),
    credential("aws_bedrock_key", "ABSKQmVkcm9ja", r"ABSKQmVkcm9ja[A-Za-z0-9+/=]{60,200}", order=45),
    credential("aws_bedrock_key", "bedrock-api-key-", r"bedrock-api-key-[A-Za-z0-9+/=]{60,4096}", after=4200),
    credential("google_api_key", "AIza", r"AIza[A-Za-z0-9_\-]{35}"),
    credential("google_oauth", "ya29.", r"ya29\.[A-Za-z0-9_\-]{20,1024}", after=1100),
    credential("google_refresh_token", "1//0", r"1//0[A-Za-z0-9_\-]{40,200}"),
    credential("google_client_secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_\-]{24,32}"),
    credential(
        "azure_storage_key",
        "accountkey=|sharedaccesskey=",
        rf"(?:accountkey|sharedaccesskey)=(?P<secret>{_BASE_64}{{40,90}}={{0,2}})",
        any_case=True,
        order=30,
    ),
    credential("azure_client_secret", "Q~", r"[A-Za-z0-9_~.\-]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}", before=4, after=48),
    credential("azure_devops_token", "AZDO", rf"[A-Za-z0-9]{{76}}AZDO[A-Za-z0-9]{{4}}{ENDS}", before=76, after=16),
    credential("azure_ai_key", "JQQJ99", rf"[A-Za-z0-9]{{52}}JQQJ99[A-Za-z0-9]{{26}}{ENDS}", before=52, after=40),
    credential("azure_function_key", "AzFu", r"[A-Za-z0-9_\-]{44}AzFu[A-Za-z0-9_\-]{6,8}={0,2}", before=44, after=24),
    credential("azure_search_key", "AzSe", rf"[A-Za-z0-9]{{42}}AzSe[A-Za-z0-9]{{6}}{ENDS}", before=42, after=16),
    credential(
        "azure_service_key",
        "+ASt|ACDb|+ASb|+AEh|+ARm|AIoT|AzCa",
        rf"{_BASE_64}{{33,76}}(?:\+ASt|ACDb|\+ASb|\+AEh|\+ARm|AIoT|AzCa){_BASE_64}{{5,6}}={{1,2}}",
        before=76,
        after=24,
    ),
    credential("digitalocean_token", "dop_v1_|doo_v1_|dor_v1_", rf"do[opr]_v1_[a-f0-9]{{64}}{ENDS}"),
    credential("cloudflare_token", "cfk_|cfut_|cfat_", rf"cf(?:k|ut|at)_[A-Za-z0-9]{{40,64}}{ENDS}"),
    credential("cloudflare_origin_key", "v1.0-", rf"v1\.0-[0-9a-f]{{24}}-[0-9a-f]{{146}}{ENDS}"),
    credential(
        "alibaba_access_key", "LTAI", rf"LTAI[A-Za-z0-9]{{12,24}}{ENDS}", check=lambda v: any(map(str.isdigit, v))
    ),
    credential(
        "tencent_secret_id", "AKID", rf"AKID[A-Za-z0-9]{{28,36}}{ENDS}", check=lambda v: any(map(str.isdigit, v))
    ),
    credential("yandex_cloud_key", "AQVN", r"AQVN[A-Za-z0-9_\-]{34,48}"),
    credential("heroku_key", "HRKU-", r"HRKU-[A-Za-z0-9_\-]{36,72}"),
    credential(
        "fly_token", "fo1_|fm1_|fm2_", r"(?:fo1_[A-Za-z0-9_\-]{40,64}|fm[12]_[A-Za-z0-9+/=_\-]{80,1024})", after=1100
    ),
    credential("render_key", "rnd_", rf"rnd_[A-Za-z0-9]{{28,40}}{ENDS}"),
    credential("vercel_token", "vcp_|vci_|vca_|vcr_|vck_", rf"vc[aiprk]_[A-Za-z0-9]{{24,80}}{ENDS}"),
    credential(
        "vercel_blob_token", "vercel_blob_rw_", rf"vercel_blob_rw_[A-Za-z0-9]{{12,24}}_[A-Za-z0-9]{{24,48}}{ENDS}"
    ),
    credential("netlify_token", "nfp_|nfo_|nfc_|nfu_|nfb_", rf"nf[bcopu]_[A-Za-z0-9]{{36,40}}{ENDS}"),
    credential(
        "doppler_token",
        "dp.",
        rf"dp\.(?:pt|st|ct|sa|scim|audit|said)\.(?:[A-Za-z0-9_\-]{{1,64}}\.)?[A-Za-z0-9]{{40,48}}{ENDS}",
    ),
    credential("vault_token", "hvs.|hvb.|hvr.", r"hv[sbr]\.[A-Za-z0-9_\-]{24,300}"),
    credential(
        "terraform_token",
        ".atlasv1.",
        r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-]{60,80}",
        before=14,
        after=100,
    ),
    credential("pulumi_token", "pul-", rf"pul-[0-9a-f]{{40}}{ENDS}"),
    credential("onepassword_token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/=_\-]{80,2048}", after=2200, order=40),
    credential(
        "onepassword_secret_key",
        "A3-",
        rf"A3-[A-Z0-9]{{6}}-(?:[A-Z0-9]{{11}}|[A-Z0-9]{{6}}-[A-Z0-9]{{5}})(?:-[A-Z0-9]{{5}}){{3}}{ENDS}",
    ),
    credential("tailscale_key", "tskey-", r"tskey-[a-z]{3,10}-[A-Za-z0-9]{8,32}(?:-[A-Za-z0-9]{16,64})?"),
    credential("akamai_token", "akab-", rf"akab-[a-z0-9]{{16}}-[a-z0-9]{{16}}{ENDS}"),
    credential("openshift_token", "sha256~", r"sha256~[A-Za-z0-9_\-]{43}"),
    credential("laravel_app_key", "base64:", r"base64:[A-Za-z0-9+/]{43}="),
    credential("django_secret_key", "django-insecure-", r"django-insecure-[^\s\"'\\]{40,60}"),
    credential("supabase_token", "sbp_|sb_secret_", r"(?:sbp_(?:v\d_)?[0-9a-f]{40}|sb_secret_[A-Za-z0-9_\-]{30,48})"),
)
