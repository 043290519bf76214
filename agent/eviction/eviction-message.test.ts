import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { evictionMessage } from './eviction-message.ts'
import type { Threshold } from './thresholds.ts'

const mib = 2 ** 20
const uid = 'uid-of-a-pod'
const below: Threshold = { signal: 'memory.available', value: { quantity: 100 * mib, family: 'binary' } }
const observed = [{ signal: 'memory.available', available: 90 * mib, capacity: 512 * mib }] as const
const of = (name: string, bytes: number) => ({ name, memoryWorkingSetBytes: bytes })

test('the message names the resource, the shortage, and the containers that exceed their requests', async (t) => {
  const container = (name: string, memory?: string) => ({
    name,
    image: 'busybox',
    ...(memory === undefined ? {} : { resources: { requests: { memory } } }),
  })
  const pod = aPod({ containers: [container('web', '64Mi'), container('log', '64Mi'), container('bare')] })
  const use = { uid, containers: [of('web', 200 * mib), of('log', 64 * mib), of('bare', 2000)] }
  t.equal(
    evictionMessage({ pod, threshold: below, observed, use, disk: undefined }),
    'The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ' +
      'Container web was using 200Mi, request is 64Mi, has larger consumption of memory. ' +
      'Container bare was using 2000, request is 0, has larger consumption of memory. ',
  )
})

test('on a full disk layer and log are added up', async (t) => {
  const threshold: Threshold = { signal: 'nodefs.available', value: { percentage: 10 } }
  const filled = (usedBytes: number) => ({ usedBytes, inodesUsed: 1 })
  const disk = { uid, containers: [{ name: 'main', rootfs: filled(3 * mib), logs: filled(mib) }], volumes: [] }
  const now = [{ signal: 'nodefs.available', available: 96 * mib, capacity: 1000 * mib }] as const
  t.equal(
    evictionMessage({ pod: aPod(), threshold, observed: now, use: undefined, disk }),
    'The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: 96Mi. ' +
      'Container main was using 4Mi, request is 0, has larger consumption of ephemeral-storage. ',
  )
})

test('inodes and processes are counted, and no container is named', async (t) => {
  const messageOf = (signal: 'nodefs.inodesFree' | 'pid.available', quantity: number) =>
    evictionMessage({
      pod: aPod(),
      threshold: { signal, value: { quantity, family: 'decimal' } },
      observed: [{ signal, available: 12_000, capacity: 1_000_000 }],
      use: { uid, containers: [{ name: 'main', pids: 5000 }] },
      disk: undefined,
    })
  t.equal(
    messageOf('nodefs.inodesFree', 50_000),
    'The node was low on resource: inodes. Threshold quantity: 50k, available: 12k. ',
  )
  t.equal(
    messageOf('pid.available', 12_500),
    'The node was low on resource: pids. Threshold quantity: 12500, available: 12k. ',
  )
})

test('what was not observed or measured is left out', async (t) => {
  const low = 'The node was low on resource: memory. '
  const facts = { pod: aPod(), threshold: below, observed, use: undefined, disk: undefined }
  const threshold = 'Threshold quantity: 100Mi, available: 90Mi. '
  t.equal(evictionMessage(facts), low + threshold)
  const other = { signal: 'nodefs.available', available: 1, capacity: 2 } as const
  t.equal(evictionMessage({ ...facts, observed: [other] }), low)
  t.equal(evictionMessage({ ...facts, observed: [other, ...observed] }), low + threshold)
  const use = { uid, containers: [{ name: 'main' }, of('removed', 200 * mib)] }
  t.equal(evictionMessage({ ...facts, use }), low + threshold)
})

test('on a full disk a container counts once its layer and its log are known', async (t) => {
  const threshold: Threshold = { signal: 'nodefs.available', value: { percentage: 10 } }
  const low = 'The node was low on resource: ephemeral-storage. '
  const filled = { usedBytes: 4 * mib, inodesUsed: 1 }
  const facts = { pod: aPod(), threshold, observed: [], use: undefined }
  t.equal(evictionMessage({ ...facts, disk: undefined }), low)
  for (const known of [{}, { rootfs: filled }, { logs: filled }]) {
    t.equal(evictionMessage({ ...facts, disk: { uid, containers: [{ name: 'main', ...known }], volumes: [] } }), low)
  }
})

test('a request for another resource does not count for this one, and init containers count', async (t) => {
  const setup = { name: 'setup', image: 'busybox', resources: { requests: { cpu: '1' } } }
  const pod = aPod({ spec: { initContainers: [setup] } })
  const use = { uid, containers: [of('setup', 2 * mib)] }
  t.match(
    evictionMessage({ pod, threshold: below, observed, use, disk: undefined }),
    /Container setup was using 2Mi, request is 0, has larger consumption of memory\. $/,
  )
  const limited = aPod({ containers: [{ name: 'setup', image: 'busybox', resources: { limits: { memory: '1Mi' } } }] })
  t.match(evictionMessage({ pod: limited, threshold: below, observed, use, disk: undefined }), /request is 0/)
})
