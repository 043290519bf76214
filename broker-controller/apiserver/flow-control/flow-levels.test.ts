import { test } from 'tap'
import { ownerOf } from '../../../api/access/service-account-names.ts'
import { administrator, anonymous, bootstrappersGroup, type Identity, lapsedNodesGroup } from '../../../api/identity.ts'
import { connectionOwner, defaultFlowLimits, streamOwner, streamWeights } from './flow-levels.ts'

const robot: Identity = { user: 'system:serviceaccount:shop:robot', groups: [] }
const jane: Identity = { user: 'jane', groups: ['ops'] }

test('all service accounts of a namespace are one owner, and every other user is its own', async (t) => {
  t.equal(ownerOf(robot.user), 'system:serviceaccounts:shop')
  t.equal(ownerOf('system:serviceaccount:shop:other'), ownerOf(robot.user))
  t.equal(ownerOf('system:serviceaccount:other:robot'), 'system:serviceaccounts:other')
  for (const user of ['jane', 'system:serviceaccount:shop', 'system:serviceaccount:a:b:c']) t.equal(ownerOf(user), user)
})

test('streams to nodes are those of the sender; an administrator has the shares of all whom it impersonates', async (t) => {
  t.equal(streamOwner(robot, robot), 'system:serviceaccounts:shop')
  t.equal(streamOwner(robot, jane), 'system:serviceaccounts:shop')
  t.equal(streamOwner(administrator, jane), 'jane')
  t.equal(streamOwner(administrator, robot), 'system:serviceaccounts:shop')
})

test('a connection belongs to a user; machines that join and clients without credentials are strangers', async (t) => {
  t.equal(connectionOwner(robot), 'system:serviceaccounts:shop')
  t.equal(connectionOwner(jane), 'jane')
  for (const groups of [[bootstrappersGroup], [lapsedNodesGroup]])
    t.equal(connectionOwner({ user: 'x', groups }), undefined)
  t.equal(connectionOwner(anonymous), undefined)
})

test('users cannot take all pages that the dashboard serves at a time', async (t) => {
  t.ok(defaultFlowLimits['global-default'].level.streams / streamWeights.dashboard <= 100, 'of 200')
})
