import { test } from 'tap'
import { ApiError } from '../../../api/api-error.ts'
import { closingCookie, openingCookie, refuseForgery, sessionCookie } from './dashboard-credentials.ts'

const own = { host: 'pi:6443', origin: 'https://pi:6443', 'sec-fetch-site': 'same-origin', 'x-bramble-csrf': '1' }
const socket = { upgrade: 'websocket', protocols: ['v5.channel.k8s.io'] }

test('the cookie is found among others, and no other name counts', async (t) => {
  t.equal(sessionCookie({ cookie: 'a=1; __Host-bramble-session=id.secret; b=2' }), 'id.secret')
  t.equal(sessionCookie({ cookie: 'bramble-session=id.secret; x__Host-bramble-session=id' }), undefined)
  t.equal(sessionCookie({}), undefined)
})

test('no script and no other site gets the cookie', async (t) => {
  for (const cookie of [openingCookie('id.secret'), closingCookie]) {
    t.match(cookie, /^__Host-bramble-session=.*; Path=\/; Secure; HttpOnly; SameSite=Strict$/)
  }
  t.match(closingCookie, 'Max-Age=0')
})

test('a request that changes something needs this origin and the header', async (t) => {
  const post = (headers: { readonly [name: string]: string | undefined }) => () =>
    refuseForgery({ method: 'POST', headers: { ...own, ...headers }, offered: undefined })
  t.doesNotThrow(post({}))
  t.doesNotThrow(post({ 'sec-fetch-site': undefined }), 'a browser without Fetch Metadata')
  t.throws(post({ 'sec-fetch-site': 'cross-site' }), ApiError)
  t.throws(post({ 'sec-fetch-site': 'same-site' }), ApiError)
  t.throws(post({ 'sec-fetch-site': 'none' }), ApiError)
  t.throws(post({ origin: 'https://pi:8443' }), ApiError)
  t.throws(post({ origin: 'null' }), ApiError)
  t.throws(post({ origin: undefined, 'sec-fetch-site': undefined }), ApiError)
  t.throws(post({ 'x-bramble-csrf': undefined }), ApiError)
})

test('a page of another site reads nothing and opens no connection', async (t) => {
  const get = (site: string | undefined) => () =>
    refuseForgery({ method: 'GET', headers: { 'sec-fetch-site': site }, offered: undefined })
  t.doesNotThrow(get('same-origin'))
  t.doesNotThrow(get('none'), 'an address that a person typed')
  t.throws(get('cross-site'), ApiError)
  const open = (headers: { readonly [name: string]: string | undefined }) => () =>
    refuseForgery({ method: 'GET', headers, offered: socket })
  t.doesNotThrow(open({ host: 'pi:6443', origin: 'https://pi:6443' }))
  t.throws(open({ host: 'pi:6443', origin: 'https://other' }), ApiError)
  t.throws(open({ host: 'pi:6443' }), ApiError)
})
