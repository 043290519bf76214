import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { NoAnswer } from './bounded-child.ts'
import { mountTurns } from './mount-turns.ts'

const nas = { path: '/mnt/nas', type: 'nfs4', source: 'nas:/export' }
const other = { ...nas, path: '/mnt/other' }
const silence = {
  name: 'VolumeError',
  message: 'the file system mounted at /mnt/nas (nfs4, nas:/export) does not answer',
}
const notThere = async () => {
  throw new NoAnswer('stat did not end within 10 s')
}

test('after a call without an answer no other waits, and one probe at a time finds the answer', async (t) => {
  let probes: ((answered: boolean) => void)[] = []
  const probe = () =>
    new Promise<void>((resolve, reject) => {
      probes.push((answered) => (answered ? resolve() : reject(new NoAnswer('left'))))
    })
  const turns = mountTurns(probe, 1)
  let calls = 0
  const call = async () => {
    calls++
    return calls
  }
  await t.rejects(turns(nas, notThere), silence)
  // No call is made and no deadline passes while the mount is silent.
  for (let i = 0; i < 20; i++) await t.rejects(turns(nas, call), silence)
  t.equal(calls, 0)
  t.equal(probes.length, 1)
  t.equal(await turns(other, call), 1, 'another mount is not affected')
  const [first] = probes
  probes = []
  first?.(false)
  while (probes.length === 0) await setImmediate()
  await t.rejects(turns(nas, call), silence)
  probes[0]?.(true)
  await setImmediate()
  t.equal(await turns(nas, call), 2)
})

test('probes end when no call is made any more', async (t) => {
  let probes = 0
  const turns = mountTurns(async () => {
    probes++
    throw new NoAnswer('left')
  }, 1)
  await t.rejects(turns(nas, notThere), silence)
  while (probes < 4) await setImmediate()
  for (let i = 0; i < 100; i++) await setImmediate()
  t.equal(probes, 4)
  await t.rejects(turns(nas, notThere), silence)
  while (probes < 8) await setImmediate()
})

test('an error of the file system is an answer', async (t) => {
  const turns = mountTurns(async () => {
    throw new Error('Stale file handle')
  }, 1)
  await t.rejects(turns(nas, notThere), silence)
  await setImmediate()
  t.equal(await turns(nas, async () => 'answered'), 'answered')
})
