import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { aContainer } from '../../testing/builders.ts'
import { folderCounter } from './folder-usage.ts'
import { mountPoints } from './mounts.ts'
import { readPodDisks } from './pod-disks.ts'

test('mounts are read once for all pods of a machine', async (t) => {
  const uids = ['a', 'b', 'c']
  const pods = Object.fromEntries(uids.map((uid) => [uid, { volumes: { data: {} } }]))
  const folder = testFolder(t, { data: { pods }, memory: {} })
  let reads = 0
  const readMounts = async () => {
    reads++
    return await mountPoints()
  }
  const containers = uids.map((podUID) => aContainer({ identity: { podUID } }))
  const folders = { dataDirectory: `${folder}/data`, memoryDirectory: `${folder}/memory` }
  const readings = await readPodDisks(containers, folders, folderCounter(), readMounts)
  t.match(
    readings.map(({ uid, volumes }) => [uid, volumes.map(({ name }) => name)]),
    uids.map((uid) => [uid, ['data']]),
  )
  t.equal(reads, 1)
})
