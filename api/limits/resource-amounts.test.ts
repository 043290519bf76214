import { test } from 'tap'
import type { Container } from '../pod.ts'
import { amountNamed, formatAmounts, limitsOfPod, requestsOfPod, sumOfAmounts } from './resource-amounts.ts'

const container = (cpu: string, more: Partial<Container> = {}): Container => ({
  name: 'one',
  resources: { requests: { cpu }, limits: { memory: `${cpu}Gi` } },
  ...more,
})

test('a pod needs its containers and sidecars, or the most that an init step needs', async (t) => {
  const sidecar = { restartPolicy: 'Always' }
  const requests = (initContainers: readonly Container[], ...containers: readonly Container[]) =>
    formatAmounts(requestsOfPod({ containers, initContainers }))
  t.equal(requests([], container('1'), container('2')), 'cpu=3')
  t.equal(requests([container('4')], container('1'), container('2')), 'cpu=4')
  t.equal(requests([container('2', sidecar)], container('1')), 'cpu=3')
  t.equal(requests([container('2', sidecar), container('3')], container('1')), 'cpu=5')
  t.equal(requests([container('3'), container('2', sidecar)], container('2')), 'cpu=4')
  t.equal(formatAmounts(limitsOfPod({ containers: [container('1'), container('2')] })), 'memory=3Gi')
  t.equal(formatAmounts(requestsOfPod({ containers: [{ name: 'one' }] })), '')
})

test('amounts are added by name and printed in the order of the names', async (t) => {
  t.equal(
    formatAmounts(sumOfAmounts({ memory: '1Gi', cpu: '100m' }, { cpu: 1, pods: 1 })),
    'cpu=1100m,memory=1Gi,pods=1',
  )
  t.equal(amountNamed({}, 'toString'), undefined)
})
