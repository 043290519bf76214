import { test } from 'tap'
import { offeredToken, refuseForeignPage } from './browser-credentials.ts'

const prefix = 'base64url.bearer.authorization.k8s.io.'
const webSocket = (...protocols: string[]) => ({ upgrade: 'websocket', protocols })
const coded = (text: string) => `${prefix}${Buffer.from(text).toString('base64url')}`

test('a token among the subprotocols is taken out of them', async (t) => {
  const offered = webSocket('a', coded('töken'), 'b')
  t.same(offeredToken(offered), { token: 'töken', offered: webSocket('a', 'b') })
  t.same(offeredToken(webSocket('a')), { token: undefined, offered: webSocket('a') })
  t.same(offeredToken(webSocket(prefix)), { token: undefined, offered: webSocket() }, 'an empty one does not count')
  const spdy = { upgrade: 'spdy/3.1', protocols: [coded('t')] }
  t.same(offeredToken(spdy), { token: undefined, offered: spdy }, 'WebSockets only')
})

test('a token that cannot be read is refused', async (t) => {
  const refused = (message: string, ...protocols: string[]) =>
    t.throws(() => offeredToken(webSocket(...protocols)), { code: 401, message })
  refused('multiple base64.bearer.authorization tokens specified', coded('a'), coded('b'), 'x')
  refused('missing additional subprotocol', coded('a'))
  for (const text of ['YQ==', 'a+b/', 'YWJjZ', 'ä']) {
    refused('invalid base64.bearer.authorization token encoding', `${prefix}${text}`, 'x')
  }
  refused('invalid base64.bearer.authorization token', `${prefix}${Buffer.of(0xff).toString('base64url')}`, 'x')
})

test('a page of another site needs a token, whatever certificate its browser has', async (t) => {
  const from =
    (site: string | undefined, more: object = {}) =>
    () =>
      refuseForeignPage({ headers: { 'sec-fetch-site': site }, offered: webSocket(), hasToken: false, ...more })
  for (const site of ['cross-site', 'same-site', 'odd']) t.throws(from(site), { code: 403 }, site)
  for (const site of [undefined, 'same-origin', 'none']) t.doesNotThrow(from(site), String(site))
  t.doesNotThrow(from('cross-site', { hasToken: true }))
  t.doesNotThrow(
    from('cross-site', { offered: undefined }),
    'the browser itself protects other requests than WebSockets',
  )
})
