import { test } from 'tap'
import { fixedText, type ProxyTextSettings, proxyProgram } from './proxy-text.ts'

const settings: ProxyTextSettings = { httpsPort: 443, accessLog: false, ipv6: false }
const lines = (over: Partial<ProxyTextSettings> = {}, otherwise?: string) =>
  fixedText({ ...settings, ...over }, otherwise).split('\n')
const added = (over: Partial<ProxyTextSettings>, otherwise?: string) => {
  const before = new Set(lines())
  return lines(over, otherwise).filter((line) => !before.has(line))
}

test('a setting changes its own lines alone', async (t) => {
  const tls = 'ssl crt-list /etc/bramble-ingress/certificates.list alpn h2,http/1.1'
  const redirect = (port: string) =>
    `  http-request redirect code 308 location https://%[var(txn.host)]${port}%[pathq] ` +
    'if !{ ssl_fc } { var(txn.route),field(2,|) -m str r }'
  t.ok(lines().includes(redirect('')), 'a redirect names no port that is usual')
  t.ok(lines().includes(`  bind :8443 ${tls} strict-sni`), 'without a certificate for them other hosts are refused')
  t.same(added({ httpsPort: 8443 }), [redirect(':8443')])
  t.same(added({ accessLog: true }), ['  log stdout format raw daemon info', '  option httplog'])
  t.same(added({}, 'house.pem'), [`  bind :8443 ${tls}`])
  t.same(added({ ipv6: true }), [
    '.if defined(BRAMBLE_INGRESS_IPV6)',
    '  bind :8080,[::]:8080 v6only',
    `  bind :8443,[::]:8443 v6only ${tls} strict-sni`,
    '.else',
    '.endif',
  ])
})

const routeStep = /route\) (\S+),map_(\w+)\(\/etc\/bramble-ingress\/(\w+)\.map\) if !\{ var\(txn\.route\) -m found \}$/

test('a route is looked up by host, wildcard and for all hosts, the whole path before its beginning', async (t) => {
  const steps = lines().flatMap((line) => {
    const [, key, match, table] = routeStep.exec(line) ?? []
    return key === undefined ? [] : [`${table} ${match} ${key.replaceAll('txn.', '')}`]
  })
  t.same(steps, [
    'exact str var(host),concat(,path)',
    'prefix beg var(host),concat(,path,/)',
    'exact str str(*.),concat(,domain),concat(,path)',
    'prefix beg str(*.),concat(,domain),concat(,path,/)',
    'exact str var(path)',
    'prefix beg var(path),concat(/)',
    'fallback str var(host)',
    'fallback str str(*.),concat(,domain)',
    'fallback str str(*)',
  ])
})

test('what a client sends in place of the headers of the proxy is removed before those are set', async (t) => {
  const all = lines()
  const place = (text: string) => all.findIndex((line) => line.startsWith(`  http-request ${text}`))
  for (const name of ['Forwarded', 'X-Forwarded-Port', 'X-Real-IP', 'HTTP2-Settings', 'Upgrade']) {
    t.ok(place(`del-header ${name}`) > 0, name)
  }
  for (const name of ['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host']) {
    t.ok(place(`set-header ${name}`) > place('del-header Forwarded'), name)
  }
  t.ok(place('return status 508') < place('add-header X-Bramble-Ingress'), 'a loop ends before it is counted')
})

test('the program has nothing that Kubernetes would expand', async (t) => {
  t.same(proxyProgram.match(/(?<!\$)\$\(/g), null)
})
