import { test } from 'tap'
import { aPod, type PodOverrides } from '../../api/testing/builders.ts'
import type { PodDiskReading } from '../usage/usage.ts'
import type { Signal } from './observations.ts'
import { filledBy, rankForEviction, requestOf } from './ranking.ts'

const mib = 2 ** 20

type Used = { readonly memory?: number; readonly pids?: number; readonly layer?: number; readonly volume?: number }

function world(...pods: readonly (readonly [string, Used | undefined, PodOverrides?])[]) {
  const made = pods.map(([name, , over]) => aPod({ name, ...over }))
  const uid = (name: string) => `uid-of-${name}`
  const use = pods.flatMap(([name, used]) =>
    used === undefined
      ? []
      : [
          {
            uid: uid(name),
            containers: [{ name: 'main', memoryWorkingSetBytes: used.memory ?? 0, pids: used.pids ?? 0 }],
          },
        ],
  )
  const disk = pods.flatMap(([name, used]): PodDiskReading[] =>
    used === undefined ? [] : [{ uid: uid(name), ...onDisk(used) }],
  )
  return (signal: Signal, imagesApart = false) =>
    rankForEviction(signal, made, {
      use: new Map(use.map((one) => [one.uid, one])),
      disk: new Map(disk.map((one) => [one.uid, one])),
      imagesApart,
    }).map(({ metadata }) => metadata.name)
}

function onDisk({ layer = 0, volume = 0 }: Used): Omit<PodDiskReading, 'uid'> {
  const filled = (size: number) => ({ usedBytes: size, inodesUsed: size })
  return {
    containers: [{ name: 'main', rootfs: filled(layer), logs: filled(0) }],
    volumes: [
      { name: 'scratch', inMemory: false, ...filled(volume) },
      { name: 'secret', inMemory: true, ...filled(10 ** 9) },
    ],
  }
}

test('under memory pressure the pod furthest over its request goes first', async (t) => {
  const rank = world(
    ['modest', { memory: 60 * mib }, { requests: { memory: '64Mi' } }],
    ['greedy', { memory: 200 * mib }, { requests: { memory: '64Mi' } }],
    ['over', { memory: 90 * mib }, { requests: { memory: '64Mi' } }],
  )
  t.same(rank('memory.available'), ['greedy', 'over', 'modest'])
})

test('a pod within its request is evicted after one that exceeds it, whatever its priority', async (t) => {
  const rank = world(
    ['kept', { memory: 64 * mib }, { requests: { memory: '64Mi' }, priority: -10 }],
    ['over', { memory: 65 * mib }, { requests: { memory: '64Mi' }, priority: 1000 }],
  )
  t.same(rank('memory.available'), ['over', 'kept'])
})

test('of two over their requests the lower priority goes first', async (t) => {
  const rank = world(['high', { memory: 500 * mib }, { priority: 10 }], ['low', { memory: mib }, { priority: 1 }])
  t.same(rank('memory.available'), ['low', 'high'])
})

test('a pod of which nothing is known goes before all others', async (t) => {
  const rank = world(['known', { memory: 900 * mib }, { priority: -5 }], ['unknown', undefined, { priority: 100 }])
  t.same(rank('memory.available'), ['unknown', 'known'])
  const listedFirst = world(
    ['unknown', undefined, { priority: 100 }],
    ['known', { memory: 900 * mib }, { priority: -5 }],
  )
  t.same(listedFirst('memory.available'), ['unknown', 'known'], 'in whatever order they are listed')
  t.same(rank('pid.available'), ['known', 'unknown'], 'but where only processes are short priority comes first')
})

test('processes are counted; they have no requests', async (t) => {
  const rank = world(['few', { pids: 3 }], ['many', { pids: 300 }], ['important', { pids: 3000 }, { priority: 1 }])
  t.same(rank('pid.available'), ['many', 'few', 'important'])
})

test('a full disk looks at all that a pod has on it, but not at what is in memory', async (t) => {
  const rank = world(['writer', { layer: 5, volume: 10 }], ['hoarder', { volume: 20 }])
  t.same(rank('nodefs.available'), ['hoarder', 'writer'])
  t.same(rank('imagefs.available'), ['hoarder', 'writer'])
})

test('where images have a disk of their own, layers count there and volumes here', async (t) => {
  const rank = world(['layers', { layer: 50, volume: 1 }], ['volumes', { volume: 20 }])
  t.same(rank('nodefs.available', true), ['volumes', 'layers'])
  t.same(rank('imagefs.inodesFree', true), ['layers', 'volumes'])
})

test('a request for local storage protects on the disk', async (t) => {
  const rank = world(['asked', { volume: 90 }, { requests: { 'ephemeral-storage': '100' } }], ['not', { volume: 10 }])
  t.same(rank('nodefs.available'), ['not', 'asked'])
})

test('an init container asks for its turn, a sidecar for all the time', async (t) => {
  const asks = (memory: string, more = {}) => ({ name: 'c', image: 'i', resources: { requests: { memory } }, ...more })
  const pod = aPod({
    containers: [asks('10Mi')],
    spec: { initContainers: [asks('5Mi', { restartPolicy: 'Always' }), asks('20Mi')] },
  })
  t.equal(requestOf(pod, 'memory'), 20 * mib)
})

test('of pods over their requests that matter alike, the one furthest over goes first, whatever it uses', async (t) => {
  const rank = world(
    ['large', { memory: 200 * mib }, { requests: { memory: '150Mi' } }],
    ['small', { memory: 100 * mib }, { requests: { memory: '10Mi' } }],
  )
  t.same(rank('memory.available'), ['small', 'large'])
})

test('of pods of which nothing is known the lower priority goes first, on every resource', async (t) => {
  const rank = world(
    ['known', { memory: mib, volume: mib }],
    ['high', undefined, { priority: 10 }],
    ['low', undefined, { priority: 1 }],
  )
  t.same(rank('memory.available'), ['low', 'high', 'known'])
  t.same(rank('nodefs.available'), ['low', 'high', 'known'])
  t.same(rank('imagefs.inodesFree'), ['low', 'high', 'known'])
})

test('inodes and bytes of one disk count layers and volumes together', async (t) => {
  const rank = world(['volumes', { volume: 20 }], ['layers', { layer: 15, volume: 10 }])
  for (const signal of ['nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree'] as const) {
    t.same(rank(signal), ['layers', 'volumes'], signal)
  }
})

test('what a pod fills is the sum of its parts on that disk; parts that were not read count nothing', async (t) => {
  const reading: PodDiskReading = {
    uid: 'u',
    containers: [
      { name: 'main', rootfs: { usedBytes: 1, inodesUsed: 10 }, logs: { usedBytes: 2, inodesUsed: 20 } },
      { name: 'new' },
    ],
    volumes: [
      { name: 'scratch', inMemory: false, usedBytes: 4, inodesUsed: 40 },
      { name: 'secret', inMemory: true, usedBytes: 8, inodesUsed: 80 },
    ],
  }
  const filled = (rootfs: boolean, logsAndVolumes: boolean) =>
    (['usedBytes', 'inodesUsed'] as const).map((what) => filledBy(reading, { rootfs, logsAndVolumes }, what))
  t.same(filled(true, true), [7, 70])
  t.same(filled(true, false), [1, 10])
  t.same(filled(false, true), [6, 60])
  t.same(filled(false, false), [0, 0])
  t.equal(filledBy(undefined, { rootfs: true, logsAndVolumes: true }, 'usedBytes'), undefined)
})

test('sidecars ask beside the containers, and a pod that asks for nothing asks for 0', async (t) => {
  const asks = (memory: string, more = {}) => ({ name: 'c', image: 'i', resources: { requests: { memory } }, ...more })
  const sidecar = { restartPolicy: 'Always' }
  const request = (initContainers: readonly ReturnType<typeof asks>[]) =>
    requestOf(aPod({ containers: [asks('10Mi')], spec: { initContainers } }), 'memory')
  t.equal(request([asks('5Mi', sidecar), asks('12Mi')]), 15 * mib)
  t.equal(request([asks('5Mi', sidecar), asks('6Mi', sidecar)]), 21 * mib)
  t.equal(request([asks('5Mi'), asks('6Mi')]), 10 * mib)
  t.equal(requestOf(aPod(), 'memory'), 0)
  t.equal(requestOf(aPod({ limits: { memory: '1Gi' } }), 'memory'), 0, 'limits alone, before the API defaults requests')
})
