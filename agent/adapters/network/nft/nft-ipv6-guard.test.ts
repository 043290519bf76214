import { type Test, test } from 'tap'
import { testFolder } from '../../../../daemon/testing/test-folder.ts'
import { type OwnSpace, ownSpace, whyNoRules } from '../../../../test/support/own-space.ts'
import { eventually } from '../../../../test/support/wait.ts'
import { baseRules } from '../../../network/base-rules.ts'
import { allRules } from '../../../network/rule-changes.ts'
import { ipv4Rules, ipv6Rules } from '../../../network/rule-family.ts'
import type { RuleSet } from '../../../network/rule-set.ts'
import { nftTable } from './nft.ts'
import { nftIPv6Guard } from './nft-ipv6-guard.ts'

const skip = whyNoRules()

/** A bridge `pods` with two pods that have given themselves IPv6 addresses, and so has the machine. */
async function withPods(t: Test) {
  const machine = await ownSpace(t)
  const pods: readonly OwnSpace[] = [await ownSpace(t), await ownSpace(t)]
  await machine.run('ip', 'link', 'add', 'pods', 'type', 'bridge')
  await machine.run('ip', 'link', 'set', 'pods', 'up')
  await machine.run('ip', '-6', 'address', 'add', 'fd00:7::fe/64', 'dev', 'pods', 'nodad')
  for (const [index, { name, run }] of pods.entries()) {
    await machine.run('ip', 'link', 'add', `pod${index}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
    await machine.run('ip', 'link', 'set', `pod${index}`, 'master', 'pods', 'up')
    await run('ip', 'link', 'set', 'eth0', 'up')
    await run('ip', '-6', 'address', 'add', `fd00:7::${index + 1}/64`, 'dev', 'eth0', 'nodad')
    await run('ip', '-6', 'route', 'add', 'default', 'via', 'fd00:7::fe')
  }
  const tools = { ip: await machine.tool('ip'), nft: await machine.tool('nft') }
  return { machine, pods, tools, guard: nftIPv6Guard('/', tools) }
}

/** Also of a neighbour that is not yet in its table. */
async function reaches({ run }: OwnSpace, address: string): Promise<boolean> {
  await run('ip', '-6', 'neighbour', 'flush', 'all')
  return run('ping', '-6', '-c', '1', '-W', '1', address).then(
    () => true,
    () => false,
  )
}

test('pods on a closed bridge reach nothing by IPv6, neither each other nor their machine', { skip }, async (t) => {
  const { machine, pods, guard } = await withPods(t)
  const [first, second] = pods
  if (first === undefined || second === undefined) return
  await machine.run('sysctl', '-q', '-w', 'net.ipv6.conf.all.forwarding=1')
  const outside = await ownSpace(t)
  await machine.run('ip', 'link', 'add', 'lan', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', outside.name)
  await machine.run('ip', 'link', 'set', 'lan', 'up')
  await machine.run('ip', '-6', 'address', 'add', 'fd00:8::fe/64', 'dev', 'lan', 'nodad')
  await outside.run('ip', 'link', 'set', 'eth0', 'up')
  await outside.run('ip', '-6', 'address', 'add', 'fd00:8::1/64', 'dev', 'eth0', 'nodad')
  await outside.run('ip', '-6', 'route', 'add', 'default', 'via', 'fd00:8::fe')
  // As an administrator may have set it: the bridge is set for itself.
  await machine.run('sysctl', '-q', '-w', 'net.bridge.bridge-nf-call-ip6tables=0').catch(() => undefined)
  const connections = async (): Promise<readonly (readonly [string, boolean])[]> => [
    ['a pod to another one', await reaches(first, 'fd00:7::2')],
    ['a pod to its machine', await reaches(first, 'fd00:7::fe')],
    ['a machine to its pod', await reaches(machine, 'fd00:7::1')],
    ['a pod to the outside', await reaches(first, 'fd00:8::1')],
    ['a stranger to a pod', await reaches(outside, 'fd00:7::2')],
  ]
  const reached = async (isReached: boolean) =>
    (await connections()).flatMap(([way, found]) => (found === isReached ? [way] : []))
  // An address of a link can be used when the kernel has looked for another holder.
  await eventually('all connections without it', async () => (await reached(false)).length === 0)
  await guard.close('pods')
  t.same(await reached(true), [], 'with it')
  // One ping waits for a second, of which a busy machine may have none to give.
  await eventually('the machine itself keeps its connections', () => reaches(machine, 'fd00:8::1'))
  await guard.remove()
  await eventually('all connections without it again', async () => (await reached(false)).length === 0)
})

test('a table that another program changed or removed is put in place again', { skip }, async (t) => {
  const { machine, guard } = await withPods(t)
  await guard.close('pods')
  await guard.close('another')
  t.equal(await guard.isClosed(), true)
  const listed = () => machine.run('nft', 'list', 'table', 'ip6', 'bramble')
  const before = await listed()
  t.match(before, /iifname "another" drop/, 'a bridge that is not there yet')
  const table = nftTable(ipv4Rules, await machine.tool('nft'), { observe: guard.observe })
  await machine.run('nft', 'flush', 'chain', 'ip6', 'bramble', 'forward')
  await table.isIntact(true)
  t.equal(await listed(), before)
  await machine.run('nft', 'flush', 'ruleset')
  t.equal(await guard.isClosed(), false)
  await table.isIntact(false)
  t.equal(await listed(), before)
  await machine.run('nft', 'delete', 'table', 'ip6', 'bramble')
  await table.isIntact(false)
  t.equal(await listed(), before, 'also where it is the only one')
})

test('an agent that starts keeps the bridges closed that the one before it has closed', { skip }, async (t) => {
  const { machine, guard, tools } = await withPods(t)
  await guard.close('pods')
  await guard.close('gone')
  await nftIPv6Guard('/', tools).verify()
  const rules = await machine.run('nft', 'list', 'table', 'ip6', 'bramble')
  t.match(rules, /iifname "pods" drop/)
  t.notMatch(rules, /gone/, 'and forgets those that are not there any more')
})

test('a bridge that was made again is set again', { skip }, async (t) => {
  const { machine, tools } = await withPods(t)
  const setting = async () => {
    const links: readonly unknown[] = JSON.parse(await machine.run('ip', '-d', '-j', 'link', 'show', 'pods'))
    return links
  }
  const isSet = (is: number) => [{ linkinfo: { info_data: { nf_call_ip6tables: is } } }]
  const root = testFolder(t, {
    proc: { net: { if_inet6: '' } },
    sys: { class: { net: { pods: { bridge: { nf_call_ip6tables: '0\n' } } } } },
  })
  const guard = nftIPv6Guard(root, tools)
  await guard.close('pods')
  const again = ['type', 'bridge', 'nf_call_ip6tables', '0'] as const
  for (const act of [guard.verify, () => guard.close('pods')]) {
    await machine.run('ip', 'link', 'set', 'pods', ...again)
    t.match(await setting(), isSet(0))
    await act()
    t.match(await setting(), isSet(1))
  }
})

test('bridges that are closed at once are all closed', { skip }, async (t) => {
  const { machine, guard } = await withPods(t)
  await Promise.all(['pods', 'br-1', 'br-2'].map((bridge) => guard.close(bridge)))
  const rules = await machine.run('nft', 'list', 'table', 'ip6', 'bramble')
  t.same([...rules.matchAll(/oifname "(\S+)" drop/g)].length, 6)
})

test('other tables stay, and on a machine without IPv6 nothing is done', { skip }, async (t) => {
  const space = await ownSpace(t)
  await space.run('nft', 'add table ip bramble; add table ip6 other; add chain ip6 other forward')
  const before = await space.run('nft', 'list', 'ruleset')
  const tools = { ip: await space.tool('ip'), nft: await space.tool('nft') }
  const without = nftIPv6Guard(testFolder(t), tools)
  await without.close('pods')
  await without.verify()
  await without.remove()
  t.equal(await without.isClosed(), true)
  t.equal(await space.run('nft', 'list', 'ruleset'), before)
  const guard = nftIPv6Guard('/', tools)
  await guard.verify()
  t.equal(await guard.isClosed(), true, 'before the first pod')
  await guard.remove()
  await guard.remove()
  t.equal(await space.run('nft', 'list', 'ruleset'), before)
})

test('the reason is named where IPv6 rules cannot be made', async (t) => {
  const root = testFolder(t, { proc: { net: { if_inet6: '' } } })
  const guard = nftIPv6Guard(root, { ip: 'true', nft: '/nonexistent/nft' })
  await t.rejects(guard.close('pods'), { message: '/nonexistent/nft is not installed' })
  await t.rejects(guard.verify(), { message: '/nonexistent/nft is not installed' })
})

const peers: RuleSet = { chains: new Map([['peers-forward', { rules: ['drop'] }]]), sets: new Map() }

test('rules of a fleet with IPv6 and the guard replace each other, and one of them is there always', {
  skip,
}, async (t) => {
  const { machine, tools } = await withPods(t)
  let isOpen = false
  const guard = nftIPv6Guard('/', tools, () => isOpen)
  const table = guard.inTurn(nftTable(ipv6Rules, tools.nft))
  const listed = () => machine.run('nft', 'list', 'table', 'ip6', 'bramble')
  await guard.close('pods')
  isOpen = true
  t.match(await listed(), /iifname "pods" drop/, 'until the rules are there')
  await table.apply(allRules(await table.list(), [baseRules(ipv6Rules), peers], ipv6Rules).commands)
  const rules = await listed()
  t.notMatch(rules, /iifname "pods" drop/)
  await machine.run('ip', 'link', 'set', 'pods', 'type', 'bridge', 'nf_call_ip6tables', '0')
  await guard.close('pods')
  await guard.verify()
  await guard.observe(undefined)
  t.equal(await listed(), rules, 'the guard stays away')
  t.match(
    await machine.run('ip', '-d', 'link', 'show', 'pods'),
    /nf_call_ip6tables 1/,
    'packets in the bridge pass them',
  )

  const later = nftIPv6Guard('/', tools)
  await later.verify()
  t.equal(await listed(), rules, 'an agent that starts leaves them until it has a bridge to close')
  await later.close('pods')
  t.match(await listed(), /iifname "pods" drop/)

  await table.apply(allRules(await table.list(), [baseRules(ipv6Rules), peers], ipv6Rules).commands)
  isOpen = false
  await table.remove()
  t.match(await listed(), /iifname "pods" drop/)
  await guard.remove()
  await table.remove()
  t.notMatch(await machine.run('nft', 'list', 'tables'), /bramble/)
})
