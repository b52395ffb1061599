"""Tokens of source hosts, package registries, build services and the tools that watch programs run."""

from __future__ import annotations

from reenact.contracts.detector import ENDS, Detector, credential

_GITLAB = "pat|rt|dt|cbt|ptt|ft|soat|imt|agent|oas|ffct|wt"

DETECTORS: tuple[Detector, ...] = (
    credential("github_token", "ghp_|gho_|ghu_|ghs_|ghr_", rf"gh[pousr]_[A-Za-z0-9]{{36,255}}{ENDS}"),
    credential("github_pat", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    credential(
        "gitlab_token",
        "|".join(f"gl{kind}-" for kind in _GITLAB.split("|")),
        rf"gl(?:{_GITLAB})-[A-Za-z0-9_\-]{{20,300}}(?:\.[0-9a-z]{{2}}\.[0-9a-z]{{9}})?",
    ),
    credential("gitlab_runner_token", "GR1348941", r"GR1348941[A-Za-z0-9_\-]{20}"),
    credential("bitbucket_token", "ATBB", rf"ATBB[A-Za-z0-9]{{28,40}}{ENDS}"),
    credential("atlassian_token", "ATATT3|ATCTT3|ATSTT3", r"AT(?:A|C|S)TT3[A-Za-z0-9_=\-]{60,300}"),
    credential("npm_token", "npm_", rf"npm_[A-Za-z0-9]{{36}}{ENDS}"),
    credential("pypi_token", "pypi-", r"pypi-[A-Za-z0-9_\-]{50,512}"),
    credential("rubygems_key", "rubygems_", rf"rubygems_[0-9a-f]{{48}}{ENDS}"),
    credential("crates_token", "cio", rf"cio[A-Za-z0-9]{{32}}{ENDS}"),
    credential("nuget_key", "oy2", rf"oy2[a-z0-9]{{43}}{ENDS}"),
    credential("clojars_token", "CLOJARS_", rf"CLOJARS_[0-9a-f]{{60}}{ENDS}"),
    credential("docker_token", "dckr_pat_|dckr_oat_", r"dckr_[op]at_[A-Za-z0-9_\-]{24,64}"),
    credential(
        "artifactory_token", "AKCp|cmVmdGtu", rf"(?:AKCp[A-Za-z0-9]{{60,76}}|cmVmdGtu[A-Za-z0-9]{{52,60}}){ENDS}"
    ),
    credential("sentry_token", "sntryu_|sntrys_", r"sntry(?:u_[0-9a-f]{64}|s_eyJ[A-Za-z0-9+/=_]{60,400})", order=40),
    credential("sonarqube_token", "sqp_|squ_|sqa_", rf"sq[pua]_[0-9a-f]{{40}}{ENDS}"),
    credential("circleci_token", "CCIPAT_|CCIPRJ_", rf"CCIP(?:AT|RJ)_[A-Za-z0-9]{{20,24}}_[0-9a-f]{{40}}{ENDS}"),
    credential("buildkite_token", "bkua_", rf"bkua_[0-9a-f]{{40}}{ENDS}"),
    credential("harness_token", "pat.|sat.", rf"[ps]at\.[A-Za-z0-9_\-]{{22}}\.[0-9a-f]{{24}}\.[A-Za-z0-9]{{20}}{ENDS}"),
    credential("snyk_token", "snyk_", r"snyk_[a-z]{3}\.[A-Za-z0-9._\-]{30,200}"),
    credential("postman_key", "PMAK-", rf"PMAK-[0-9a-f]{{24}}-[0-9a-f]{{34}}{ENDS}"),
    credential("sourcegraph_token", "sgp_", rf"sgp_(?:[0-9a-f]{{16}}_|local_)?[0-9a-f]{{40}}{ENDS}"),
    credential("linear_key", "lin_api_|lin_oauth_", rf"lin_(?:api|oauth)_[A-Za-z0-9]{{40,64}}{ENDS}"),
    credential("figma_token", "figd_|figo_|figu_", r"fig[dou]_[A-Za-z0-9_\-]{36,56}"),
    credential("notion_token", "ntn_", rf"ntn_[A-Za-z0-9]{{40,56}}{ENDS}"),
    credential("notion_token", "secret_", rf"secret_[A-Za-z0-9]{{43}}{ENDS}"),
    credential(
        "airtable_token",
        "airtable",
        rf"airtable[^\r\n]{{0,120}}?(?<![A-Za-z0-9])(?P<secret>pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}){ENDS}",
        any_case=True,
    ),
    Detector(
        name="asana_token",
        group="credentials",
        run="shapes",
        anchors=("0/000000000000000",),
        pattern=r"(?<![A-Za-z0-9])[012]/[0-9]{15,17}(?:/[0-9]{15,17})?:[0-9a-f]{32}(?![A-Za-z0-9])",
    ),
    credential("clickup_token", "pk_", rf"pk_[0-9]{{5,10}}_[A-Z0-9]{{32}}{ENDS}"),
    credential("readme_key", "rdme_", rf"rdme_[a-z0-9]{{60,72}}{ENDS}"),
    credential("newrelic_key", "NRAK-|NRAA-|NRRA-|NRII-", r"NR(?:AK|AA|RA|II)-[A-Za-z0-9_\-]{27,48}"),
    credential(
        "grafana_token", "glsa_|glc_", r"(?:glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/=]{40,400})", order=40
    ),
    credential("dynatrace_token", "dt0", rf"dt0[a-z][0-9]{{2}}\.[A-Z0-9]{{24}}\.[A-Z0-9]{{64}}{ENDS}"),
    credential(
        "honeycomb_key", "hcaik_|hcaic_|hcbik_|hcbic_|hcxik_|hcxlk_", rf"hc(?:[ab]i[kc]|x[il]k)_[0-9a-z]{{50,64}}{ENDS}"
    ),
    credential("contentful_token", "CFPAT-", r"CFPAT-[A-Za-z0-9_\-]{40,48}"),
    credential("prefect_key", "pnu_|pnb_", rf"pn[ub]_[A-Za-z0-9]{{36}}{ENDS}"),
    credential("dbt_token", "dbtc_|dbtu_", r"dbt[cu]_[A-Za-z0-9_\-]{36,80}"),
    credential(
        "jetbrains_token",
        "perm:|perm-",
        r"perm[:\-][A-Za-z0-9+/=_\-]{4,96}\.[A-Za-z0-9+/=_\-]{2,96}\.[A-Za-z0-9+/=_\-]{20,80}",
    ),
    credential("scalingo_token", "tk-us-", r"tk-us-[A-Za-z0-9_\-]{40,56}"),
    credential("ory_token", "ory_", r"ory_(?:at|rt|ac|pat|apikey|st)_[A-Za-z0-9_\-.]{24,120}"),
    credential("unkey_key", "unkey_", rf"unkey_[A-Za-z0-9]{{20,48}}{ENDS}"),
    credential("inngest_key", "signkey-", rf"signkey-[a-z]{{3,12}}-[0-9a-f]{{32,64}}{ENDS}"),
    credential(
        "trigger_key", "tr_dev_|tr_prod_|tr_stg_|tr_pat_", rf"tr_(?:dev|prod|stg|pat)_[A-Za-z0-9]{{18,64}}{ENDS}"
    ),
    credential("elastic_key", "essu_", r"essu_[A-Za-z0-9+/=_\-]{40,200}"),
)
