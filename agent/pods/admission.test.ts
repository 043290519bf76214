import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { admit } from './admission.ts'

const node = { cpu: '2', memory: '1Gi', pods: '3' }

test('a pod that fits is admitted', async (t) => {
  const pod = aPod({ requests: { cpu: '1', memory: '512Mi' } })
  t.same(admit(pod, [pod], node), { admit: true }, 'exactly fits')
  t.same(admit(aPod(), [], {}), { admit: true }, 'what is not known does not stop it')
})

test('what does not fit is refused in Kubernetes’ words', async (t) => {
  t.same(admit(aPod({ requests: { cpu: '1500m' } }), [aPod({ requests: { cpu: '600m' } })], node), {
    admit: false,
    reason: 'OutOfcpu',
    message: "Node didn't have enough resource: cpu, requested: 1500, used: 600, capacity: 2000",
  })
  t.match(admit(aPod({ requests: { memory: '2Gi' } }), [], node), { reason: 'OutOfmemory' })
  t.match(admit(aPod(), [aPod(), aPod(), aPod()], node), {
    reason: 'OutOfpods',
    message: "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
  })
})

test('a port of the host is had by one pod at a time', async (t) => {
  const on = (hostPort: number, more: { hostIP?: string; protocol?: string } = {}) =>
    aPod({ containers: [{ name: 'main', ports: [{ containerPort: 80, hostPort, ...more }] }] })
  t.match(admit(on(80), [on(80)], node), { admit: false, reason: 'NodePorts' })
  t.match(admit(on(80, { hostIP: '192.0.2.1' }), [on(80)], node), { admit: false })
  t.match(admit(on(80, { hostIP: '192.0.2.1' }), [on(80, { hostIP: '192.0.2.2' })], node), { admit: true })
  t.match(admit(on(80, { protocol: 'UDP' }), [on(80)], node), { admit: true })
  t.match(admit(on(81), [on(80)], node), { admit: true })
})
