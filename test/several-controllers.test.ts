/** Several controllers on one store in etcd, as a user starts them: one leads, the others answer reads and pass on the rest. */
import { test } from 'tap'
import { noEtcd as skip } from './support/etcd.ts'
import type { Controller } from './support/fleet.ts'
import { startReplicas } from './support/replicas.ts'
import { eventually } from './support/wait.ts'

const metric = 'leader_election_master_status'

async function leads(controller: Controller): Promise<boolean> {
  const text = await controller.kubectl('get', '--raw', '/metrics')
  return text.includes(`${metric}{name="bramble-controller"} 1`)
}

const lease = ['-n', 'kube-system', 'get', 'lease', 'bramble-controller', '-o', 'jsonpath={.spec.leaseTransitions}']

test('a standby answers kubectl, and leads when the leader ends', { skip, timeout: 300_000 }, async (t) => {
  const { controllers, start } = await startReplicas(t)
  const [first, second] = controllers
  if (first === undefined || second === undefined) throw new Error('There are two controllers')

  await t.test('readiness and metrics show which of the two leads', async (t) => {
    t.match(await first.kubectl('get', '--raw', '/readyz?verbose'), /\[\+\]leading ok/)
    t.match(await second.kubectl('get', '--raw', '/readyz?verbose'), /\[\+\]standby ok/)
    t.equal(await leads(first), true)
    t.equal(await leads(second), false)
    t.match(await second.kubectl('get', '--raw', '/metrics'), /^bramble_controllers 2$/m)
  })

  await t.test('writes by the standby are those of the leader, and are visible at both at once', async (t) => {
    await second.kubectl('create', 'namespace', 'web')
    await second.kubectl('-n', 'web', 'create', 'configmap', 'a', '--from-literal=word=sesame')
    for (const one of controllers) {
      t.equal(await one.kubectl('-n', 'web', 'get', 'configmap', 'a', '-o', 'jsonpath={.data.word}'), 'sesame')
    }
    await first.kubectl('-n', 'web', 'create', 'service', 'clusterip', 'one', '--tcp=80')
    await second.kubectl('-n', 'web', 'create', 'service', 'clusterip', 'two', '--tcp=80')
    const addresses = ['-n', 'web', 'get', 'services', '-o', 'jsonpath={.items[*].spec.clusterIP}']
    const taken = (await second.kubectl(...addresses)).split(' ')
    t.equal(new Set(taken).size, 2, `addresses ${taken}`)
    t.equal(await second.kubectl(...lease), '0', 'leases are those of the leader')
    t.match(await second.kubectl('auth', 'whoami'), /kubernetes-admin/)
    const denied = await second.tryKubectl('--as=guest', '-n', 'web', 'create', 'configmap', 'b')
    t.match(denied, { code: 1, stderr: /User "guest" cannot create resource "configmaps"/ })
  })

  await t.test('the leader ends: the standby leads', async (t) => {
    const ended = first.program.stop()
    await second.program.logged('Controller ready')
    t.equal(await ended, 0)
    await eventually('a write', async () => (await second.tryKubectl('create', 'configmap', 'late')).code === 0)
    t.equal(await second.kubectl(...lease), '1')
    const back = await start(0)
    t.equal(await leads(back), false)
    await back.kubectl('delete', 'configmap', 'late')
  })
})
