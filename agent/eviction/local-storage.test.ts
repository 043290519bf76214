import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import type { PodDiskReading } from '../usage/usage.ts'
import { brokenStorageLimit, hasStorageLimits, incompleteCount } from './local-storage.ts'

const mib = 2 ** 20

function using({ layer = 0, logs = 0, scratch = 0 }): PodDiskReading {
  const filled = (usedBytes: number) => ({ usedBytes, inodesUsed: 1 })
  return {
    uid: 'uid-of-a-pod',
    containers: [{ name: 'main', rootfs: filled(layer), logs: filled(logs) }],
    volumes: [{ name: 'scratch', inMemory: false, ...filled(scratch) }],
  }
}

const scratch = (sizeLimit?: string) =>
  aPod({ spec: { volumes: [{ name: 'scratch', emptyDir: sizeLimit === undefined ? {} : { sizeLimit } }] } })

test('only pods with a limit are measured', async (t) => {
  t.equal(hasStorageLimits(aPod()), false)
  t.equal(hasStorageLimits(scratch()), false)
  t.equal(hasStorageLimits(scratch('0')), false)
  t.equal(hasStorageLimits(scratch('1Mi')), true)
  t.equal(hasStorageLimits(aPod({ limits: { 'ephemeral-storage': '1Mi' } })), true)
})

test('a scratch volume may be as large as its limit and no larger', async (t) => {
  t.equal(brokenStorageLimit(scratch('1Mi'), using({ scratch: mib }), false), undefined)
  t.equal(
    brokenStorageLimit(scratch('1Mi'), using({ scratch: mib + 1 }), false),
    'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". ',
  )
})

test('limits of containers bound all that the pod has on disk', async (t) => {
  const pod = aPod({ limits: { 'ephemeral-storage': '2Mi' } })
  t.equal(brokenStorageLimit(pod, using({ layer: mib, scratch: mib }), false), undefined)
  t.equal(
    brokenStorageLimit(pod, using({ layer: mib, scratch: mib + 1 }), false),
    'Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ',
  )
  t.equal(
    brokenStorageLimit(pod, using({ layer: mib, scratch: mib + 1 }), true),
    undefined,
    'layers on the disk of images are not counted',
  )
})

test('a container with a limit of its own keeps to it beside others that use nothing', async (t) => {
  const limited = (name: string) => ({ name, image: 'i', resources: { limits: { 'ephemeral-storage': '2Mi' } } })
  const pod = aPod({ containers: [limited('main'), limited('idle')] })
  t.equal(
    brokenStorageLimit(pod, using({ layer: mib, logs: mib + 1 }), false),
    'Container main exceeded its local ephemeral storage limit "2Mi". ',
  )
})

test('a limit of one container or volume of many is enough to be measured', async (t) => {
  const idle = { name: 'idle', image: 'i' }
  const limited = { name: 'main', image: 'i', resources: { limits: { 'ephemeral-storage': '2Mi' } } }
  const memoryOnly = { name: 'small', image: 'i', resources: { limits: { memory: '2Mi' } } }
  t.equal(hasStorageLimits(aPod({ containers: [idle, limited] })), true)
  t.equal(hasStorageLimits(aPod({ containers: [idle], spec: { initContainers: [limited] } })), true)
  t.equal(hasStorageLimits(aPod({ containers: [memoryOnly, { ...idle, resources: {} }] })), false)
  const volumes = [
    { name: 'settings', configMap: { name: 'settings' } },
    { name: 'scratch', emptyDir: { sizeLimit: '1Mi' } },
  ]
  t.equal(hasStorageLimits(aPod({ spec: { volumes } })), true)
  t.equal(hasStorageLimits(aPod({ spec: { volumes: volumes.slice(0, 1) } })), false)
})

test('each volume is compared with its own limit', async (t) => {
  const filled = (name: string, usedBytes: number) => ({ name, inMemory: false, usedBytes, inodesUsed: 1 })
  const volumes = [
    { name: 'settings', configMap: { name: 'settings' } },
    { name: 'not-measured', emptyDir: { sizeLimit: '1Ki' } },
    { name: 'free', emptyDir: {} },
    { name: 'scratch', emptyDir: { sizeLimit: '1Mi' } },
  ]
  const use = (scratchBytes: number): PodDiskReading => ({
    uid: 'uid-of-a-pod',
    containers: [],
    volumes: [filled('settings', 5 * mib), filled('free', 9 * mib), filled('scratch', scratchBytes)],
  })
  t.equal(brokenStorageLimit(aPod({ spec: { volumes } }), use(mib), false), undefined)
  t.match(
    brokenStorageLimit(aPod({ spec: { volumes } }), use(mib + 1), false),
    /volume "scratch" exceeds the limit "1Mi"/,
  )
})

test('the limit of a pod is the sum of its containers, or that of an init container where it is higher', async (t) => {
  const limited = (name: string, limit: string) => ({
    name,
    image: 'i',
    resources: { limits: { 'ephemeral-storage': limit } },
  })
  const limitOf = (initContainers: ReturnType<typeof limited>[], ...containers: ReturnType<typeof limited>[]) =>
    brokenStorageLimit(aPod({ containers, spec: { initContainers } }), using({ scratch: 100 * mib }), false)
  const message = (limit: string) =>
    `Pod ephemeral local storage usage exceeds the total limit of containers ${limit}. `
  t.equal(limitOf([], limited('a', '2Mi'), limited('b', '3Mi')), message('5Mi'))
  t.equal(limitOf([limited('first', '7Mi'), limited('second', '6Mi')], limited('a', '5Mi')), message('7Mi'))
  t.equal(limitOf([limited('first', '4Mi')], limited('a', '5Mi')), message('5Mi'))
  t.equal(limitOf([limited('first', '4Mi')], limited('a', '0')), message('4Mi'))
  t.equal(limitOf([limited('first', '0')], limited('a', '0')), undefined, 'zero means no limit')
})

test('containers that were not measured, or that have no limit, break none', async (t) => {
  const limited = { name: 'main', image: 'i', resources: { limits: { 'ephemeral-storage': '1Mi' } } }
  const pod = aPod({
    containers: [limited, { name: 'other', image: 'i', resources: { limits: { 'ephemeral-storage': '9Mi' } } }],
  })
  const containers = (...some: PodDiskReading['containers']): PodDiskReading => ({
    uid: 'u',
    containers: some,
    volumes: [],
  })
  const filled = (usedBytes: number) => ({ usedBytes, inodesUsed: 1 })
  t.equal(brokenStorageLimit(pod, containers({ name: 'main' }), false), undefined)
  t.equal(brokenStorageLimit(pod, containers({ name: 'main', logs: filled(mib) }), false), undefined)
  t.match(
    brokenStorageLimit(pod, containers({ name: 'main', logs: filled(mib + 1) }), false),
    /^Container main exceeded/,
  )
  t.match(
    brokenStorageLimit(pod, containers({ name: 'main', rootfs: filled(mib + 1) }), false),
    /^Container main exceeded/,
  )
  t.equal(brokenStorageLimit(pod, containers({ name: 'main', rootfs: filled(mib + 1) }), true), undefined)
  t.equal(brokenStorageLimit(pod, containers({ name: 'other', logs: filled(2 * mib) }), false), undefined)
  t.equal(brokenStorageLimit(pod, containers({ name: 'removed', logs: filled(2 * mib) }), false), undefined)
})

test('the first part that could not be counted is named with the reason', async (t) => {
  const filled = (incomplete?: string) => ({
    usedBytes: 1,
    inodesUsed: 1,
    ...(incomplete !== undefined && { incomplete }),
  })
  const count = (layer?: string, logs?: string, volume?: string) =>
    incompleteCount({
      uid: 'u',
      containers: [{ name: 'idle' }, { name: 'main', rootfs: filled(layer), logs: filled(logs) }],
      volumes: [{ name: 'scratch', inMemory: false, ...filled(volume) }],
    })
  t.equal(count(), undefined)
  t.equal(count('a', 'b', 'took longer than 10 s'), 'volume scratch: took longer than 10 s')
  t.equal(count('more than 100000 files', 'b'), 'layer of main: more than 100000 files')
  t.equal(count(undefined, 'EIO'), 'logs of main: EIO')
})

test('a container with limits of other resources only has no limit of local storage', async (t) => {
  const limited = { name: 'limited', image: 'i', resources: { limits: { 'ephemeral-storage': '9Mi' } } }
  const pod = aPod({ containers: [{ name: 'main', image: 'i', resources: {} }, limited] })
  t.equal(brokenStorageLimit(pod, using({ layer: 8 * mib }), false), undefined)
  t.match(brokenStorageLimit(pod, using({ layer: 10 * mib }), false), /exceeds the total limit of containers 9Mi/)
})

test('a sidecar counts as a regular container, and an init container with the sidecars before it', async (t) => {
  const limited = (name: string, limit: string) => ({
    name,
    image: 'i',
    resources: { limits: { 'ephemeral-storage': limit } },
  })
  const sidecar = { ...limited('side', '2Mi'), restartPolicy: 'Always' }
  const limitOf = (...initContainers: ReturnType<typeof limited>[]) => {
    const pod = aPod({ containers: [limited('main', '2Mi')], spec: { initContainers } })
    return brokenStorageLimit(pod, using({ scratch: 100 * mib }), false)
  }
  t.match(limitOf(sidecar), /total limit of containers 4Mi/)
  t.match(limitOf(sidecar, limited('init', '3Mi')), /total limit of containers 5Mi/)
  t.match(limitOf(limited('init', '3Mi'), sidecar), /total limit of containers 4Mi/)
})

test('an init container alone does not break its own limit while the pod is within the sum', async (t) => {
  const resources = { limits: { 'ephemeral-storage': '1Mi' } }
  const other = { name: 'other', image: 'i', resources: { limits: { 'ephemeral-storage': '8Mi' } } }
  const pod = aPod({ containers: [other], spec: { initContainers: [{ name: 'main', image: 'i', resources }] } })
  t.equal(brokenStorageLimit(pod, using({ layer: 2 * mib }), false), undefined)
})
