/** kubernetes-fluent-client against a fleet: fluent-client.mjs IMAGE, with KUBECONFIG. Prints a line for each step. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { K8s, kind } from 'kubernetes-fluent-client'

const [image] = process.argv.slice(2)
const namespace = 'fluent'
const step = (name) => console.log(name)

await K8s(kind.Namespace).Apply({ metadata: { name: namespace } })
const seen = []
const watcher = K8s(kind.Pod)
  .InNamespace(namespace)
  .Watch((pod, phase) => void seen.push([phase, pod.metadata.name]))
await watcher.start()
const containers = [{ name: 'main', image, command: ['sleep', '1000'] }]
const pod = {
  metadata: { name: 'one', namespace, labels: { app: 'one' } },
  spec: { terminationGracePeriodSeconds: 1, containers },
}
await K8s(kind.Pod).Apply(pod)
const found = await K8s(kind.Pod).InNamespace(namespace).WithLabel('app', 'one').Get()
assert.deepEqual(
  found.items.map(({ metadata }) => metadata.name),
  ['one'],
)
step('apply and get')
await K8s(kind.ConfigMap).Create({ metadata: { name: 'settings', namespace }, data: { a: '1' } })
const patched = await K8s(kind.ConfigMap, { name: 'settings', namespace }).Patch([
  { op: 'replace', path: '/data/a', value: '2' },
])
assert.deepEqual(patched.data, { a: '2' })
step('create and patch')
await K8s(kind.Pod).InNamespace(namespace).Delete('one')
for (const start = Date.now(); !seen.some(([phase]) => phase === 'DELETED'); await delay(100)) {
  assert.ok(Date.now() - start < 60_000, 'the watch shows no deletion')
}
assert.deepEqual(seen[0], ['ADDED', 'one'])
step('watch')
watcher.close()
await K8s(kind.Namespace).Delete(namespace)
process.exit(0)
