import { test } from 'tap'
import { fakeClock } from '../../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../../daemon/testing/quiet-log.ts'
import { claimApi } from '../../../testing/claim-api.ts'
import { type GrowingClaim, growthFailed, growthPlan } from './claim-growth.ts'
import { GrpcError } from './grpc-error.ts'
import { volumeEvents } from './volume-events.ts'
import { volumeGrowth } from './volume-growth.ts'

type Status = NonNullable<GrowingClaim['status']>

const claimWith = (status: Status, accessModes = ['ReadWriteOnce']): GrowingClaim => ({
  metadata: { uid: 'u', resourceVersion: '1' },
  spec: { accessModes },
  status: { capacity: { storage: '1Gi' }, ...status },
})
const waiting = (step: string): Status => ({
  allocatedResources: { storage: '2Gi' },
  allocatedResourceStatuses: { storage: step },
})
const volume = {
  ...{ volume: 'pv', driver: 'disk.example.com', claim: 'shop/data', claimUID: 'u' },
  pod: { namespace: 'shop', name: 'db', uid: 'p' },
  growth: { size: '2Gi', isAwaited: true, secrets: { texts: {} } },
}
const failure = (code: number) => async () => {
  throw new GrpcError(code, 'no')
}

test('the node expands a volume when the controller of the driver has finished, to the size that it allocated', async (t) => {
  for (const [title, expected, status, modes] of [
    ['pending', { step: 'expand', size: '2Gi' }, waiting('NodeResizePending')],
    ['begun before', { step: 'expand', size: '2Gi' }, waiting('NodeResizeInProgress')],
    ['the controller works on it', { step: 'wait' }, waiting('ControllerResizeInProgress')],
    ['it cannot be had', { step: 'wait' }, waiting('NodeResizeInfeasible')],
    ['done', { step: 'done' }, { capacity: { storage: '2Gi' }, allocatedResources: { storage: '2Gi' } }],
    ['an old resizer', { step: 'expand', size: '3Gi', isOfOldResizer: true }, {}],
    ['an old resizer, done', { step: 'done' }, { capacity: { storage: '3Gi' } }],
    [
      'done on another node',
      { step: 'expand', size: '2Gi', isWritten: true },
      { capacity: { storage: '2Gi' }, allocatedResources: { storage: '2Gi' } },
      ['ReadWriteMany'],
    ],
  ] satisfies [string, object, Status, string[]?][]) {
    t.same(growthPlan(claimWith(status, modes), '3Gi'), expected, title)
  }
})

function node(t: { fail(message: string): unknown }, claim: GrowingClaim) {
  const held: { claim?: GrowingClaim | undefined } = { claim }
  const events: unknown[] = []
  const posted: unknown[] = []
  const [log, clock, api] = [quietLog(t), fakeClock(), claimApi(held)]
  const post = async (path: string, body: unknown) => {
    posted.push([path, body])
    return { status: 201, body, dateHeader: undefined }
  }
  const controlPlane = { reportEvent: (event: unknown) => void events.push(event) }
  const recorded = volumeEvents({ controlPlane, api: { post }, clock, log }, 'pi-1')
  return { held, events, posted, growth: volumeGrowth({ api, events: recorded, clock, log }, 'pi-1') }
}

test('an expansion is in progress, then done, and conditions of others stay', async (t) => {
  const conditions = ['Resizing', 'FileSystemResizePending', 'ModifyingVolume'].map((type) => ({
    type,
    status: 'True',
  }))
  const { held, events, posted, growth } = node(t, claimWith({ ...waiting('NodeResizePending'), conditions }))
  const seen: unknown[] = []
  const expand = async (bytes: number) =>
    void seen.push([bytes, held.claim?.status?.allocatedResourceStatuses?.['storage']])
  t.equal(await growth.grow(volume, expand), 'done')
  t.same(seen, [[2 * 1024 ** 3, 'NodeResizeInProgress']])
  t.match(held.claim?.status, { capacity: { storage: '2Gi' }, conditions: [{ type: 'ModifyingVolume' }] })
  t.equal(held.claim?.status?.allocatedResourceStatuses, undefined)
  const reason = 'FileSystemResizeSuccessful'
  t.match(events, [{ involvedObject: { kind: 'Pod', name: 'db', uid: 'p' }, reason }])
  t.match(posted, [
    [
      '/api/v1/namespaces/shop/events',
      { involvedObject: { kind: 'PersistentVolumeClaim', name: 'data', uid: 'u' }, reason },
    ],
  ])
  t.equal(await growth.grow(volume, expand), 'done', 'and not once more')
  t.equal(seen.length, 1)
})

test('a failed expansion is a condition of the claim; a size that cannot be had is not tried again', async (t) => {
  const { held, growth } = node(t, claimWith(waiting('NodeResizePending')))
  await t.rejects(growth.grow(volume, failure(14)), { message: /Unavailable/ })
  t.equal(held.claim?.status?.conditions, undefined, 'the driver may still work on it')
  await t.rejects(growth.grow(volume, failure(13)))
  t.match(held.claim?.status?.conditions, [{ type: 'NodeResizeError', status: 'True', message: /code = Internal/ }])
  t.match(held.claim?.status?.allocatedResourceStatuses, { storage: 'NodeResizeInProgress' })
  await t.rejects(growth.grow(volume, failure(11)), { message: /the volume rpc error: code = OutOfRange/ })
  t.match(held.claim?.status?.allocatedResourceStatuses, { storage: 'NodeResizeInfeasible' })
  t.equal(held.claim?.status?.conditions?.length, 1)
  t.equal(await growth.grow(volume, failure(13)), 'later')
})

test('a driver that cannot expand on nodes has the claim fail only if the node is to do it', async (t) => {
  const asked = node(t, claimWith(waiting('NodeResizePending')))
  await t.rejects(asked.growth.grow(volume, undefined), {
    message: 'NodeExpand is not supported by the CSI driver disk.example.com',
  })
  t.equal(await node(t, claimWith({})).growth.grow(volume, undefined), 'done', 'an old resizer writes the size itself')
  const missing = { ...volume, growth: { ...volume.growth, secrets: { missing: 'secrets "s" not found' } } }
  await t.rejects(asked.growth.grow(missing, failure(13)), { message: /secrets "s" not found/ })
})

test('an expansion waits for the API, and is not made for another claim of that name', async (t) => {
  const { held, growth } = node(t, claimWith(waiting('NodeResizePending')))
  const never = async () => void t.fail('the driver is not called')
  t.equal(await growth.grow({ ...volume, claimUID: 'other' }, never), 'later')
  held.claim = undefined
  t.equal(await growth.grow(volume, never), 'later')
})

test('the reason of a failure stays the first one', async (t) => {
  const first = { type: 'NodeResizeError', status: 'True', message: 'first' }
  const claim = claimWith({ ...waiting('NodeResizeInProgress'), conditions: [first] })
  t.match(growthFailed(claim, { isInfeasible: false, message: 'second' }, '2026-01-01T00:00:00Z'), {
    metadata: { resourceVersion: '1' },
    status: { conditions: [first] },
  })
})
