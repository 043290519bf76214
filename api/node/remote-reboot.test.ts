import { test } from 'tap'
import { aNode } from '../testing/builders.ts'
import { rebootRequestedAnnotation, rebootStatusAnnotation } from './reboot-annotations.ts'
import { pendingReboot, rebootTimeProblem, rebootTimeRefusal } from './remote-reboot.ts'

const requestedAt = '2026-01-02T03:04:05Z'
const nowMs = Date.parse(requestedAt)

function withStatus(status: unknown, asked: string | undefined = requestedAt) {
  return aNode({
    annotations: {
      ...(asked !== undefined && { [rebootRequestedAnnotation]: asked }),
      [rebootStatusAnnotation]: typeof status === 'string' ? status : JSON.stringify(status),
    },
  })
}

test('a node receives a request while it is pending, for the boot it was made in', async (t) => {
  const pending = { requestedAt, state: 'Pending', bootID: 'boot-1' }
  t.same(pendingReboot(withStatus(pending)), { requestedAt, bootID: 'boot-1' })
  for (const state of ['Completed', 'Refused', 'Expired']) {
    t.equal(pendingReboot(withStatus({ ...pending, state })), undefined, state)
  }
  t.equal(pendingReboot(withStatus({ requestedAt, state: 'Pending' })), undefined, 'for no boot')
  t.equal(pendingReboot(withStatus('Pending')), undefined, 'a status that cannot be read')
  t.equal(pendingReboot(aNode({ annotations: { [rebootRequestedAnnotation]: requestedAt } })), undefined)
})

test('a request is withdrawn when its annotation is removed or has another time', async (t) => {
  const status = JSON.stringify({ requestedAt, state: 'Pending', bootID: 'boot-1' })
  t.equal(pendingReboot(aNode({ annotations: { [rebootStatusAnnotation]: status } })), undefined)
  t.equal(pendingReboot(withStatus(status, '2026-01-02T03:04:06Z')), undefined)
})

test('the time of a request is RFC 3339', async (t) => {
  for (const good of [requestedAt, '2026-01-02T03:04:05.678Z', '2026-01-02T04:04:05+01:00']) {
    t.equal(rebootTimeProblem(good), undefined, good)
  }
  for (const bad of [
    '',
    'now',
    '2026-01-02',
    '2026-13-02T03:04:05Z',
    '1767323045',
    `${requestedAt}\n`,
    'x'.repeat(9999),
  ]) {
    t.match(rebootTimeProblem(bad), /RFC 3339/, bad.slice(0, 30))
  }
})

test('a request is accepted for five minutes, by clocks that differ by as much', async (t) => {
  const minutes = (count: number) => rebootTimeRefusal(requestedAt, nowMs + count * 60_000)
  t.equal(minutes(0), undefined)
  t.equal(minutes(5), undefined)
  t.equal(minutes(-5), undefined)
  t.equal(minutes(5.001), 'it is more than 5 minutes old')
  t.equal(minutes(-5.001), 'its time is more than 5 minutes in the future')
  t.match(rebootTimeRefusal('now', nowMs), /its time must be/)
})
