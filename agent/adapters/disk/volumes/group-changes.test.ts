import { test } from 'tap'
import { groupChanges } from './group-changes.ts'

/** Work that ends when the test ends it; `began` counts it. */
function slowWork() {
  const began: AbortSignal[] = []
  const ends: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = []
  const work = (signal: AbortSignal) => {
    began.push(signal)
    return new Promise<void>((resolve, reject) => void ends.push({ resolve, reject }))
  }
  return { began, ends, work }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
const otherPod = { message: /of another pod, which gets it first/ }
const still = { message: /^the files of the volume are being given to the fsGroup\. If/ }

test('a second pod waits until the volume is placed for the first one', async (t) => {
  const changes = groupChanges(1)
  const { work, began, ends } = slowWork()
  await t.rejects(changes.give('pv', 'a', work), still)
  await t.rejects(changes.give('pv', 'b', work), otherPod)
  t.throws(() => changes.refuseForOther('pv', 'b'), otherPod, 'also one without a group')
  changes.refuseForOther('pv', 'a')
  await t.rejects(changes.give('pv', 'a', work), still, 'the same work goes on')
  t.equal(began.length, 1)
  ends[0]?.resolve()
  await settled()
  await t.rejects(changes.give('pv', 'b', work), otherPod, 'the first pod is not placed yet')
  await changes.give('pv', 'a', work)
  changes.placed('pv', 'a')
  t.equal(began.length, 1)
  await t.rejects(changes.give('pv', 'b', work), still)
  t.equal(began.length, 2)
  ends[1]?.resolve()
})

test('other volumes are not held up', async (t) => {
  const changes = groupChanges(1)
  const { work, ends } = slowWork()
  await t.rejects(changes.give('pv', 'a', work), still)
  await changes.give('other', 'b', async () => undefined)
  ends[0]?.resolve()
})

test('after a pod that goes, the next one begins only when the work for it has ended', async (t) => {
  const changes = groupChanges(1)
  const { work, began, ends } = slowWork()
  await t.rejects(changes.give('pv', 'a', work), still)
  changes.stop('a')
  t.equal(began[0]?.aborted, true)
  await t.rejects(changes.give('pv', 'b', work), otherPod)
  ends[0]?.reject(new Error('aborted'))
  await settled()
  await changes.give('pv', 'b', async () => undefined)
  changes.stop('b')
  await changes.give('pv', 'c', async () => undefined)
})

test('work that failed is begun again, by its pod or by another one', async (t) => {
  const changes = groupChanges(1)
  const { work, ends } = slowWork()
  await t.rejects(
    changes.give('pv', 'a', async () => {
      throw new Error('EIO')
    }),
    { message: 'EIO' },
  )
  await t.rejects(changes.give('pv', 'a', work), still)
  ends[0]?.reject(new Error('EIO'))
  await settled()
  await changes.give('pv', 'b', async () => undefined)
})

test('a pod that does not come back for its volume holds it for five minutes', async (t) => {
  let nowMs = 0
  const changes = groupChanges(1, { now: () => nowMs })
  const { work, began, ends } = slowWork()
  await t.rejects(changes.give('pv', 'a', work), still)
  nowMs = 3_600_000
  await t.rejects(changes.give('pv', 'b', work), otherPod, 'however long the work runs')
  ends[0]?.resolve()
  await settled()
  nowMs += 299_999
  await t.rejects(changes.give('pv', 'b', work), otherPod)
  nowMs += 1
  await t.rejects(changes.give('pv', 'b', work), still)
  await t.rejects(changes.give('pv', 'a', work), otherPod, 'the first one waits now')
  t.equal(began.length, 2)
  ends[1]?.resolve()
})

test('the caller learns when work that was stopped has ended', async (t) => {
  let count = 0
  const stopped = () => {
    count += 1
  }
  const changes = groupChanges(1, { stopped })
  const { work, ends } = slowWork()
  await t.rejects(changes.give('pv', 'a', work), still)
  changes.stop('a')
  t.equal(count, 0)
  ends[0]?.reject(new Error('aborted'))
  await settled()
  t.equal(count, 1)
  t.notOk(changes.isChanging('pv'))
})
