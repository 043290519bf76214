import { test } from 'tap'
import { answerHeaders, requestHeaders, rewrittenLocation, upgradeHeaders } from './proxy-headers.ts'

const request = { method: 'GET', headers: [], address: '192.0.2.7', uri: '/api/v1/x', isUpgrade: false }

function sent(headers: readonly string[], more: Partial<Parameters<typeof requestHeaders>[0]> = {}) {
  const flat = requestHeaders({ ...request, headers, ...more })
  const names = flat.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
  const of = (name: string) => flat.filter((_, i) => i % 2 === 1 && flat[i - 1]?.toLowerCase() === name)
  return { names, of }
}

test('headers go on as they are, also those that repeat', async (t) => {
  const { of } = sent(['Host', 'api:6443', 'X-One', '1', 'x-one', '2', 'Cookie', 'a=b'])
  t.same([of('host'), of('x-one'), of('cookie')], [['api:6443'], ['1', '2'], ['a=b']])
  t.same(of('connection'), ['close'])
  t.same(of('x-forwarded-uri'), ['/api/v1/x'])
})

test('credentials for the API go no further', async (t) => {
  const { names, of } = sent([
    ...[
      'Authorization',
      'Bearer secret',
      'Impersonate-User',
      'root',
      'Impersonate-Extra-Scopes',
      'x',
      'Expect',
      '100-continue',
      'X-Bramble-Identity',
      'e30',
    ],
    ...['Sec-WebSocket-Protocol', 'base64url.bearer.authorization.k8s.io.c2VjcmV0, chat'],
    ...['Sec-WebSocket-Protocol', ' v2 '],
  ])
  t.notOk(names.some((name) => /authorization|impersonate|expect|identity/.test(name)))
  t.same(of('sec-websocket-protocol'), ['chat, v2'])
  const { names: without } = sent(['Sec-WebSocket-Protocol', 'base64url.bearer.authorization.k8s.io.c2VjcmV0'])
  t.notOk(without.includes('sec-websocket-protocol'))
})

test('headers of the connection stay on it', async (t) => {
  const { names, of } = sent([
    'Connection',
    'keep-alive, X-Mine',
    'X-Mine',
    '1',
    'Keep-Alive',
    'x',
    'TE',
    'trailers',
    'X-Other',
    '2',
  ])
  t.notOk(names.includes('x-mine'))
  t.notOk(names.includes('keep-alive'))
  t.notOk(names.includes('te'))
  t.same(of('x-other'), ['2'])
})

test('the addresses on the way are kept', async (t) => {
  t.same(sent([]).of('x-forwarded-for'), ['192.0.2.7'])
  t.same(sent(['X-Forwarded-For', '10.0.0.1']).of('x-forwarded-for'), ['10.0.0.1, 192.0.2.7'])
  t.same(sent([], { address: undefined }).of('x-forwarded-for'), [])
})

test('the body is announced as the client announced it', async (t) => {
  const post = { method: 'POST' }
  t.same(sent([], post).of('content-length'), ['0'])
  t.same(sent(['Content-Length', '5'], post).of('content-length'), ['5'])
  t.same(sent(['Transfer-Encoding', 'chunked'], post).of('transfer-encoding'), ['chunked'])
  t.same(sent(['Transfer-Encoding', 'chunked'], post).of('content-length'), [])
  for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS'])
    t.same(sent([], { method }).of('content-length'), [], method)
  t.same(sent(['Transfer-Encoding', 'chunked'], { method: 'DELETE' }).of('transfer-encoding'), ['chunked'])
})

test('the length of a body is kept where Connection names it: without, a GET would carry a second request', async (t) => {
  for (const method of ['GET', 'DELETE', 'POST']) {
    const { of } = sent(['Connection', 'Content-Length, X-Hop', 'Content-Length', '5', 'X-Hop', '1'], { method })
    t.same([of('content-length'), of('x-hop')], [['5'], []], method)
  }
})

test('an upgrade announces no body', async (t) => {
  const upgrade = { isUpgrade: true }
  t.same(sent(['Upgrade', 'a', 'Content-Length', '5'], upgrade).of('content-length'), [])
  t.same(sent(['Upgrade', 'a', 'Transfer-Encoding', 'chunked'], upgrade).of('transfer-encoding'), [])
})

test('the session of a browser at the API goes no further, and no answer begins one', async (t) => {
  const cookies = ['Cookie', 'a=b; __Host-bramble-session=secret; c=d', 'cookie', '__Host-bramble-session=secret']
  t.same(sent(cookies).of('cookie'), ['a=b; c=d'])
  const answer = ['Set-Cookie', '__Host-bramble-session=x; Path=/; Secure', 'Set-Cookie', 'a=1']
  t.same(
    answerHeaders(answer, (location) => location),
    ['Set-Cookie', 'a=1'],
  )
  t.same(sent(cookies, { toController: true }).of('cookie'), [cookies[1], cookies[3]], 'but to another controller')
  t.same(
    answerHeaders(answer, (location) => location, true),
    answer,
  )
})

test('a browser keeps nothing of an answer beyond the path of the proxy', async (t) => {
  const to = (path: string) => rewrittenLocation(path, '/api/v1/p/proxy', [])
  const wide = ['Service-Worker-Allowed', '/', 'CLEAR-SITE-DATA', '"*"', 'Strict-Transport-Security', 'max-age=9']
  const more = ['Alt-Svc', 'h2="evil:443"', 'NEL', '{}', 'Report-To', '{}']
  const cookies = {
    'a=1': 'a=1',
    'a=1; Path=/; HttpOnly': 'a=1; Path=/api/v1/p/proxy/; HttpOnly',
    'a=1; pAtH = /ui ;Domain=example.org': 'a=1; Path=/api/v1/p/proxy/ui',
    'a=1; Path=/x; Path=/api/v1/p/proxy/y': 'a=1; Path=/api/v1/p/proxy/x; Path=/api/v1/p/proxy/y',
    'a=1; Path=//host/': 'a=1; Path=//host/',
    'a=1; Path=/api/v1/p/proxy/../../../../ui': 'a=1; Path=/api/v1/p/proxy/../../../../ui',
    'a=Path=/; Max-Age=1; path': 'a=Path=/; Max-Age=1; path',
  }
  for (const [cookie, within] of Object.entries(cookies)) {
    const answer = ['Set-Cookie', cookie, ...wide, ...more, 'Content-Type', 'text/html']
    t.same(answerHeaders(answer, to), ['Set-Cookie', within, 'Content-Type', 'text/html'])
    t.same(answerHeaders(answer, to, true), answer, 'but of another controller')
    const upgrade = ['Connection', 'Upgrade', 'Set-Cookie', '__Host-bramble-session=x; Path=/', ...answer]
    t.same(upgradeHeaders(upgrade, to), ['Connection', 'Upgrade', 'Set-Cookie', within, 'Content-Type', 'text/html'])
    t.same(upgradeHeaders(upgrade, to, true), upgrade)
  }
})

test('an upgrade is asked for again', async (t) => {
  const { of } = sent(['Connection', 'Upgrade', 'Upgrade', 'websocket', 'Sec-WebSocket-Key', 'k'], { isUpgrade: true })
  t.same([of('connection'), of('upgrade'), of('sec-websocket-key')], [['Upgrade'], ['websocket'], ['k']])
})

test('the answer keeps its headers, without those of its connection', async (t) => {
  const headers = [
    ...['Content-Type', 'text/html', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Transfer-Encoding', 'chunked'],
    ...['Connection', 'close, X-Hop', 'X-Hop', '1', 'LOCATION', '/there'],
  ]
  t.same(
    answerHeaders(headers, (location) => `/proxy${location}`),
    [...['Content-Type', 'text/html', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'LOCATION', '/proxy/there']],
  )
})

test('redirects to the same server lead through the proxy', async (t) => {
  const to = (location: string) => rewrittenLocation(location, '/api/v1/p/proxy', ['api:6443', '10.0.0.2:80'])
  t.equal(to('/login?next=/a#b'), '/api/v1/p/proxy/login?next=/a#b')
  t.equal(to('/'), '/api/v1/p/proxy/')
  t.equal(to('http://10.0.0.2:80/x/'), '/api/v1/p/proxy/x/')
  t.equal(to('https://api:6443/x'), '/api/v1/p/proxy/x')
  t.equal(to('//api:6443/x'), '/api/v1/p/proxy/x')
  t.equal(to('/api/v1/p/proxy/x'), '/api/v1/p/proxy/x', 'it has the prefix already')
  t.equal(to('/api/v1/p/proxy?x'), '/api/v1/p/proxy?x')
  t.equal(to('/api/v1/p/proxyother'), '/api/v1/p/proxy/api/v1/p/proxyother')
  for (const other of ['https://example.org/x', 'next/page', '?x=1', '', 'ftp://api:6443/x', 'mailto:a@b']) {
    t.equal(to(other), other)
  }
})

test('a browser is not offered a compressed page, whose links could not be rewritten', async (t) => {
  const accepts = (accept: string, more = {}) =>
    sent(['Accept', accept, 'Accept-Encoding', 'gzip, br'], more).of('accept-encoding')
  t.same(accepts('text/html,application/xhtml+xml,*/*;q=0.8'), [])
  t.same(accepts('*/*'), ['gzip, br'], 'scripts and images')
  t.same(accepts('text/html', { toController: true }), ['gzip, br'])
})
