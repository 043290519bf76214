import { test } from 'tap'
import { networkCondition } from './network-condition.ts'

test('a node whose routes are in place has a network', async (t) => {
  t.same(networkCondition({ problems: [], gaps: [], routes: 2 }), {
    type: 'NetworkUnavailable',
    status: 'False',
    reason: 'RouteCreated',
    message: 'Routes to the pods of 2 other nodes are in place',
  })
  t.match(networkCondition({ problems: [], gaps: [], routes: 0 }), { status: 'False' }, 'the only node of its fleet')
})

test('one node that is not reached does not take this one out of use', async (t) => {
  t.match(networkCondition({ problems: [], gaps: ['no route to 10.244.2.0/24'], routes: 1 }), {
    status: 'False',
    message: 'Routes to the pods of 1 other node are in place; no route to 10.244.2.0/24',
  })
})

test('without any connection to others the network is unavailable, with the reason', async (t) => {
  t.match(networkCondition({ problems: ['nft is not installed'], gaps: [], routes: 2 }), {
    status: 'True',
    reason: 'NoRouteCreated',
    message: 'nft is not installed',
  })
  t.match(networkCondition({ problems: [], gaps: ['no route to a', 'no route to b'], routes: 0 }), { status: 'True' })
})

test('a message names some of many nodes', async (t) => {
  const gaps = ['a', 'b', 'c', 'd', 'e']
  t.match(networkCondition({ problems: [], gaps, routes: 0 }).message, /^a; b; c; 2 more$/)
  t.match(networkCondition({ problems: [], gaps: gaps.slice(0, 3), routes: 0 }).message, /^a; b; c$/)
})
