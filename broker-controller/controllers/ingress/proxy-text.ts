/** The constant part of the configuration of HAProxy, from 2.6 (Debian 12) on, and the program of its container. */
import { unavailableBackend } from './ingress-routes.ts'

/** Where the files are in the container: a volume that the agent replaces at once. */
const folder = '/etc/bramble-ingress'

export const proxyPorts = { http: 8080, https: 8443, health: 8404 } as const

export const proxyFiles = {
  folder,
  certificateFolder: folder,
  configuration: 'haproxy.cfg',
  exact: 'exact.map',
  prefix: 'prefix.map',
  fallback: 'fallback.map',
  certificateList: 'certificates.list',
  /** Changes with any of the others. */
  version: 'version',
} as const

export type ProxyTextSettings = {
  readonly httpsPort: number
  readonly accessLog: boolean
  /** Pods of the fleet have addresses of both families. */
  readonly ipv6: boolean
}

/** In the environment of HAProxy where its machine has IPv6: elsewhere no socket of it can be opened, and HAProxy would not start. */
const ipv6Variable = 'BRAMBLE_INGRESS_IPV6'

/** `otherwise`: the certificate for hosts without one of their own; undefined: a connection to them is refused. */
export function fixedText({ httpsPort, accessLog, ipv6 }: ProxyTextSettings, otherwise: string | undefined): string {
  const strict = otherwise === undefined ? ' strict-sni' : ''
  const port = httpsPort === 443 ? '' : `:${httpsPort}`
  const tls = ` ssl crt-list ${folder}/${proxyFiles.certificateList} alpn h2,http/1.1${strict}`
  return `${limits}
frontend health
  bind :${proxyPorts.health}
  http-request return status 200 content-type text/plain string ok if { path /healthz }
  http-request return status 404

frontend pages
${ipv6 ? eitherBinds(tls) : binds(ofIPv4, tls)}
${accessLog ? '  log stdout format raw daemon info\n  option httplog\n' : ''}${headers}
${lookups}
  http-request redirect code 308 location https://%[var(txn.host)]${port}%[pathq] if !{ ssl_fc } { var(txn.route),field(2,|) -m str r }
  use_backend %[var(txn.route),field(1,|)] if { var(txn.route) -m found }
  default_backend none

backend none
  http-request return status 404 content-type text/plain string "404: no Ingress has this host and path"

backend ${unavailableBackend}
  http-request return status 503 content-type text/plain string "503: the Service of this Ingress is not available"
`
}

const ofIPv4 = (port: number) => `:${port}`
/**
 * A socket of each family: one for both would show IPv4 clients with IPv4-mapped addresses, to which pods could not compare. In one line, so that
 * both have one copy of the certificates in memory.
 */
const ofBoth = (port: number) => `:${port},[::]:${port} v6only`

function binds(at: (port: number) => string, tls: string): string {
  return `  bind ${at(proxyPorts.http)}\n  bind ${at(proxyPorts.https)}${tls}`
}

function eitherBinds(tls: string): string {
  return `.if defined(${ipv6Variable})\n${binds(ofBoth, tls)}\n.else\n${binds(ofIPv4, tls)}\n.endif`
}

/**
 * A worker that a reload replaces ends with its last connection, at the latest after five minutes or twelve reloads. Without
 * `fd-hard-limit` memory follows the limit of open files, which Docker sets to a million. A connection to a Service is not used
 * again: each request is balanced by the rules of the node, and none is led to a pod that is gone.
 */
const limits = `global
  hard-stop-after 5m
  mworker-max-reloads 12
  fd-hard-limit 10000
  ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets

defaults
  mode http
  option dontlognull
  option http-server-close
  option idle-close-on-response
  retries 2
  timeout connect 3s
  timeout client 60s
  timeout server 60s
  timeout http-request 10s
  timeout http-keep-alive 60s
  timeout client-fin 10s
  timeout tunnel 1h
`

/**
 * What a client sends in their place is removed: a backend may trust them. An upgrade to HTTP/2 is removed, too: what follows it in the
 * connection would reach the backend without any of these rules. A Service whose endpoint is a proxy would use up all
 * connections.
 */
const headers = `  http-request del-header Forwarded
  http-request del-header X-Forwarded-Port
  http-request del-header X-Real-IP
  http-request del-header HTTP2-Settings
  http-request del-header Upgrade if { req.hdr(upgrade) -m beg -i h2 }
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Proto http if !{ ssl_fc }
  http-request set-header X-Forwarded-Proto https if { ssl_fc }
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request return status 508 content-type text/plain string "508: a Service leads back to the proxy" if { req.fhdr_cnt(x-bramble-ingress) ge 4 }
  http-request add-header X-Bramble-Ingress 1`

/** The host of the request, then the wildcard with its domain, then all hosts; of each the whole path, then its beginning. */
const lookups = [
  'set-var(txn.host) req.hdr(host),host_only,lower,rtrim(.)',
  'set-var(txn.domain) var(txn.host),field(2,.,0)',
  'set-var(txn.path) path',
  ...lookup('var(txn.host),concat(,txn.path)', 'exact', 'str'),
  ...lookup('var(txn.host),concat(,txn.path,/)', 'prefix', 'beg'),
  ...lookup('str(*.),concat(,txn.domain),concat(,txn.path)', 'exact', 'str'),
  ...lookup('str(*.),concat(,txn.domain),concat(,txn.path,/)', 'prefix', 'beg'),
  ...lookup('var(txn.path)', 'exact', 'str'),
  ...lookup('var(txn.path),concat(/)', 'prefix', 'beg'),
  ...lookup('var(txn.host)', 'fallback', 'str'),
  ...lookup('str(*.),concat(,txn.domain)', 'fallback', 'str'),
  ...lookup('str(*)', 'fallback', 'str'),
]
  .map((line) => `  http-request ${line}`)
  .join('\n')

function lookup(key: string, table: 'exact' | 'prefix' | 'fallback', match: 'str' | 'beg'): readonly string[] {
  const value = `${key},map_${match}(${folder}/${proxyFiles[table]})`
  return [`set-var(txn.route) ${value} if !{ var(txn.route) -m found }`]
}

/**
 * For `sh -c`. Starts HAProxy and reloads it when the files change: the listening sockets pass to a new worker, and the old one ends
 * with its connections. What HAProxy refuses is printed, and what runs stays; it is tried again, as the check itself may have failed, for
 * memory, or while not all Secrets of a change are there. `$$(` is `$(`, which Kubernetes would expand.
 *
 * A HAProxy that starts, or reloads, is left alone for ten seconds: SIGUSR2 ends it before its handlers are there, and SIGUSR1 gets lost
 * (2.6). So the request to stop is repeated. Each worker has a memory of its own, too.
 */
export const proxyProgram = `
config=${folder}
[ ! -e /proc/net/if_inet6 ] || export ${ipv6Variable}=yes
read -r running <"$config/${proxyFiles.version}"
haproxy -c -q -f "$config/${proxyFiles.configuration}" || exit 1
haproxy -W -db -q -f "$config/${proxyFiles.configuration}" &
proxy=$!
stopping=
printed=
trap 'stopping=yes; kill -USR1 "$proxy"' TERM INT USR1
pause=10
while kill -0 "$proxy" 2>/dev/null; do
  sleep $pause &
  wait $!
  pause=2
  if [ -n "$stopping" ]; then
    pause=1
    kill -USR1 "$proxy" 2>/dev/null
    continue
  fi
  read -r wanted <"$config/${proxyFiles.version}" || continue
  [ "$wanted" != "$running" ] || continue
  pause=10
  if refused=$$(haproxy -c -f "$config/${proxyFiles.configuration}" 2>&1); then
    running=$wanted
    kill -USR2 "$proxy"
    echo "Configuration $wanted loaded"
  elif [ "$printed" != "$wanted" ]; then
    printed=$wanted
    echo "Configuration $wanted refused, the one before it stays: $refused" >&2
  fi
done
wait "$proxy"
`.trim()
