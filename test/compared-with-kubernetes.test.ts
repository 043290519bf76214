import { join } from 'node:path'
import { test } from 'tap'
import { apiInputs } from '../bench/kubernetes/api-inputs.ts'
import { answersTo, differences, inputSender } from '../bench/kubernetes/comparison.ts'
import { standardChecks } from '../broker-controller/apiserver/standard-checks.ts'
import { ensureFleetObjects } from '../broker-controller/assembly/bootstrap-objects.ts'
import { readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { memoryStore } from '../broker-controller/store/memory-store.ts'
import { startApi } from '../broker-controller/testing/api-under-test.ts'
import { systemClock as clock } from '../daemon/clock.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'

test('the API answers as kube-apiserver 1.32, but for documented differences', async (t) => {
  const store = memoryStore({ clock })
  const readiness = standardChecks({ store, clock, isEtcd: false, isLeftForLater: () => false })
  const api = await startApi({ log: quietLog(t), over: { store, readiness } })
  t.teardown(api.stop)
  await ensureFleetObjects(store, clock)
  const admin = await readKubeconfig(join(api.folder, 'admin.kubeconfig'))
  const answers = await answersTo(apiInputs, inputSender(admin))
  for (const [index, { name, expected, differs }] of apiInputs.entries()) {
    const found = differences(expected, answers[index] ?? { code: 0 })
    if (differs === undefined) t.same(found, [], name)
    else t.not(found.length, 0, `${name} (${differs})`)
  }
})

test('each input has a name of its own', (t) => {
  t.equal(new Set(apiInputs.map(({ name }) => name)).size, apiInputs.length)
  t.end()
})

test('a difference names the place, what was found and what was expected', (t) => {
  const expected = { code: 201, fields: { status: { a: 1, b: 2 }, '': 'ok' } }
  t.same(differences(expected, { code: 201, fields: { status: { b: 2, a: 1 }, '': 'ok' } }), [])
  t.same(differences(expected, { code: 200, fields: { status: { a: 1 }, '': 'no' } }), [
    'code: 200, not 201',
    'status: {"a":1}, not {"a":1,"b":2}',
    'text: "no", not "ok"',
  ])
  t.end()
})
