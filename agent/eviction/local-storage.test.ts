import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import type { PodDiskReading } from '../usage/usage.ts'
import { brokenStorageLimit, hasStorageLimits } from './local-storage.ts'

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
