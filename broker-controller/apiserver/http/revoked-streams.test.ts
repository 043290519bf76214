import { type Test, test } from 'tap'
import { type Clock, systemClock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { startApi } from '../../testing/api-under-test.ts'
import { bearer, tokenClients } from '../../testing/token-clients.ts'
import { checkAccessMs } from '../authorization/held-access.ts'

/** The right to open answers is asked for again every few milliseconds. */
const hasty: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms === checkAccessMs ? 5 : ms, signal),
}

async function anApi(t: Test) {
  const api = await startApi({ log: quietLog(t), over: { clock: hasty } })
  t.teardown(api.stop)
  return { ...api, ...tokenClients(t, api) }
}

const watchOf = (namespace: string) => `/api/v1/namespaces/${namespace}/secrets?watch=1`
const bindings = (namespace: string) => `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`

test('a watch ends when the binding that allows it is deleted, and the watches of others go on', async (t) => {
  const { editor, open, admin } = await anApi(t)
  const [eve, jane] = [await editor('shop', 'eve'), await editor('shop', 'jane')]
  const [lost, kept] = [await open(watchOf('shop'), bearer(eve)), await open(watchOf('shop'), bearer(jane))]
  await admin('DELETE', `${bindings('shop')}/eve`)
  t.equal(await lost.ended, true, 'regularly, as a watch may end at any time')
  await admin('POST', '/api/v1/namespaces/shop/secrets', { metadata: { name: 'late' } })
  while (!kept.text().includes('"late"')) await systemClock.sleep(5)
  t.notMatch(lost.text(), /"late"/)
  t.equal(kept.isOver(), false)
  t.equal((await open(watchOf('shop'), bearer(eve))).code, 403)
})

test('a watch ends when its service account is deleted', async (t) => {
  const { editor, open, admin } = await anApi(t)
  const token = await editor('shop', 'eve')
  const watch = await open(watchOf('shop'), bearer(token))
  await admin('DELETE', '/api/v1/namespaces/shop/serviceaccounts/eve')
  t.equal(await watch.ended, true)
  t.equal((await open(watchOf('shop'), bearer(token))).code, 401)
})

test('a watch ends when the rule of its role is removed, or the right to impersonate its user', async (t) => {
  const { editor, open, admin } = await anApi(t)
  const [eve] = [await editor('shop', 'eve'), await editor('shop', 'jane')]
  const as = { 'impersonate-user': 'system:serviceaccount:shop:jane' }
  const acting = await open(watchOf('shop'), { headers: { ...bearer(eve).headers, ...as } })
  t.equal(acting.code, 200)
  await admin('DELETE', `${bindings('shop')}/eve`)
  t.equal(await acting.ended, true, 'jane has the right still')
  const own = await open(watchOf('shop'), bearer(await editor('shop', 'kim')))
  const role = '/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles/editor'
  await admin('PUT', role, { metadata: { name: 'editor' }, rules: [] })
  t.equal(await own.ended, true)
})
