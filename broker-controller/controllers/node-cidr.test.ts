import { test } from 'tap'
import { defaultNodeCidrSettings, ipv6NodeCidrs, type NodeCidrs, nodeCidrProblem, nodeCidrs } from './node-cidr.ts'

const small = { clusterCIDR: '10.244.0.0/22', nodeCIDRMaskSize: 24 }

test('each node gets a block of its own, until there are none', async (t) => {
  const cidrs = nodeCidrs(small)
  t.same(
    ['a', 'b', 'c', 'd', 'e'].map((owner) => cidrs.take(owner)),
    ['10.244.0.0/24', '10.244.1.0/24', '10.244.2.0/24', '10.244.3.0/24', undefined],
  )
  cidrs.release('10.244.2.0/24', 'c')
  t.equal(cidrs.take('e'), '10.244.2.0/24')
})

test('a block that came back is the last to be given again', async (t) => {
  const cidrs = nodeCidrs(small)
  cidrs.release(cidrs.take('a') ?? '', 'a')
  t.same(
    ['b', 'c', 'd', 'e'].map((owner) => cidrs.take(owner)),
    ['10.244.1.0/24', '10.244.2.0/24', '10.244.3.0/24', '10.244.0.0/24'],
  )
})

test('what nodes have already is never given, in blocks of whatever size', async (t) => {
  const cidrs = nodeCidrs(small)
  t.ok(cidrs.mark('10.244.0.0/23', 'of an earlier mask'))
  t.ok(cidrs.mark('10.244.3.128/25', 'of a smaller one'))
  t.ok(cidrs.mark('192.168.0.0/24', 'elsewhere'))
  t.ok(cidrs.mark('fd00::/64', 'in another family'))
  t.equal(cidrs.take('a'), '10.244.2.0/24')
  t.equal(cidrs.take('b'), undefined)
  t.notOk(cidrs.mark('10.244.2.0/24', 'by hand'), 'two have the same')
  cidrs.release('10.244.2.0/24', 'a')
  t.equal(cidrs.take('b'), undefined, 'until the last of them is gone')
})

test('whatever happens, no two nodes have the same block, and all blocks come back', async (t) => {
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 48271) % 0x7fffffff
    return seed % below
  }
  for (let round = 0; round < 50; round++) {
    const settings = { clusterCIDR: '10.0.0.0/18', nodeCIDRMaskSize: 20 + random(6) }
    const cidrs = nodeCidrs(settings)
    const held = new Map<string, string>()
    const seeAgain = (owner: string, present: string) => {
      if (random(2) === 0) return void cidrs.mark(present, owner) // the watch event of the assignment
      cidrs.release(present, owner)
      held.delete(owner)
    }
    const assign = (owner: string) => {
      const given = cidrs.take(owner)
      if (given === undefined) {
        if (held.size !== cidrs.size) t.fail(`nothing given with ${held.size} of ${cidrs.size} in use`)
        return
      }
      if ([...held.values()].includes(given)) t.fail(`${given} was given twice`)
      held.set(owner, given)
    }
    for (let step = 0; step < 300; step++) {
      const owner = `node-${random(40)}`
      const present = held.get(owner)
      if (present === undefined) assign(owner)
      else seeAgain(owner, present)
    }
    for (const [owner, cidr] of held) cidrs.release(cidr, owner)
    const all = new Set(Array.from({ length: cidrs.size }, (_, index) => cidrs.take(`later-${index}`)))
    if (all.size !== cidrs.size || all.has(undefined)) t.fail('some blocks did not come back')
  }
})

test('settings that make no sense are refused when they are read', async (t) => {
  t.equal(nodeCidrProblem(small), undefined)
  t.match(nodeCidrProblem({ ...small, clusterCIDR: '10.0.0.1/8' }), /clusterCIDR: "10.0.0.1\/8" must be an IPv4 range/)
  t.match(nodeCidrProblem({ ...small, nodeCIDRMaskSize: 21 }), /nodeCIDRMaskSize: 21 must be between 22 and 30/)
  t.match(nodeCidrProblem({ clusterCIDR: '10.0.0.0/8', nodeCIDRMaskSize: 25 }), /between 8 and 24/)
})

const takeAll = (cidrs: NodeCidrs) => Array.from({ length: cidrs.size + 1 }, () => cidrs.take('later'))

test('the default range has a block of 256 addresses for each of 256 nodes', async (t) => {
  const cidrs = nodeCidrs(defaultNodeCidrSettings)
  t.equal(nodeCidrProblem(defaultNodeCidrSettings), undefined)
  t.same([cidrs.size, cidrs.take('a')], [256, '10.244.0.0/24'])
  t.throws(() => nodeCidrs({ ...small, clusterCIDR: '10.0.0.1/8' }), TypeError)
})

test('a range takes exactly the blocks that it overlaps', async (t) => {
  const cases: readonly [range: string, left: readonly number[]][] = [
    ['10.244.1.0/24', [0, 2, 3]],
    ['10.244.0.0/24', [1, 2, 3]],
    ['10.244.3.0/24', [0, 1, 2]],
    ['10.244.2.0/23', [0, 1]],
    ['10.244.1.255/32', [0, 2, 3]],
    ['10.244.2.0/32', [0, 1, 3]],
    ['10.243.255.0/24', [0, 1, 2, 3]],
    ['10.244.4.0/24', [0, 1, 2, 3]],
    ['10.244.8.0/22', [0, 1, 2, 3]],
    ['no range', [0, 1, 2, 3]],
    ['10.244.0.0/22', []],
    ['10.0.0.0/8', []],
  ]
  for (const [range, left] of cases) {
    const cidrs = nodeCidrs(small)
    t.ok(cidrs.mark(range, 'a'), range)
    const taken = takeAll(cidrs).filter((block) => block !== undefined)
    t.same(
      taken,
      left.map((block) => `10.244.${block}.0/24`),
      range,
    )
  }
})

test('a block is shared when a second node marks it, and free when both have released it', async (t) => {
  const cidrs = nodeCidrs({ clusterCIDR: '10.244.0.0/23', nodeCIDRMaskSize: 24 })
  t.ok(cidrs.mark('10.244.0.0/24', 'a'))
  t.ok(cidrs.mark('10.244.0.0/24', 'a'), 'the same node may mark its block again')
  t.notOk(cidrs.mark('10.244.0.0/23', 'b'), 'one of the two blocks is shared')
  t.equal(cidrs.take('c'), undefined)
  cidrs.release('10.244.0.0/23', 'c')
  t.equal(cidrs.take('c'), undefined, 'a node releases only what it has itself')
  cidrs.release('10.244.0.0/23', 'b')
  t.equal(cidrs.take('c'), '10.244.1.0/24')
  cidrs.release('10.244.0.0/24', 'a')
  cidrs.release('10.244.0.0/24', 'a')
  t.equal(cidrs.take('d'), '10.244.0.0/24')
})

test('the block size is valid from the size of the range to 65536 blocks and to four addresses in a block', async (t) => {
  const isValid = (clusterCIDR: string, nodeCIDRMaskSize: number) =>
    nodeCidrProblem({ clusterCIDR, nodeCIDRMaskSize }) === undefined
  t.same([isValid('10.0.0.0/8', 7), isValid('10.0.0.0/8', 8)], [false, true])
  t.same([isValid('10.0.0.0/8', 24), isValid('10.0.0.0/8', 25)], [true, false])
  t.same([isValid('10.244.0.0/22', 30), isValid('10.244.0.0/22', 31)], [true, false])
})

test('the IPv6 blocks are /64 ranges, and those of nodes are never assigned', async (t) => {
  const cidrs = ipv6NodeCidrs('fd00:10:244::/62')
  t.equal(cidrs.size, 4)
  t.ok(cidrs.mark('fd00:10:244:1:8000::/80', 'of a smaller size'))
  t.ok(cidrs.mark('10.244.0.0/16', 'in another family'))
  t.ok(cidrs.mark('fd00:10:243::/48', 'elsewhere'))
  t.same(
    ['a', 'b', 'c', 'd'].map((owner) => cidrs.take(owner)),
    ['fd00:10:244::/64', 'fd00:10:244:2::/64', 'fd00:10:244:3::/64', undefined],
  )
  t.notOk(cidrs.mark('fd00:10:244:2::/63', 'by hand'), 'two have the same')
  cidrs.release('fd00:10:244::/64', 'a')
  t.equal(cidrs.take('e'), 'fd00:10:244::/64')
  const all = ipv6NodeCidrs('fd00:10:244::/62')
  t.ok(all.mark('::/0', 'of everything'))
  t.equal(all.take('a'), undefined)
  t.throws(() => ipv6NodeCidrs('10.244.0.0/16'), TypeError)
})
