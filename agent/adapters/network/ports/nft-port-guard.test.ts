import { type Test, test } from 'tap'
import { testFolder } from '../../../../daemon/testing/test-folder.ts'
import { type OwnSpace, ownSpace, whyNoRules } from '../../../../test/support/own-space.ts'
import { eventually } from '../../../../test/support/wait.ts'
import { type PodPort, portGuardName, portGuardTable } from '../../../network/ports/port-guard.ts'
import { nftPortGuard } from './nft-port-guard.ts'

const skip = whyNoRules()

const gateway = { ipv4: '10.7.0.1', ipv6: 'fd00:7::1' }
const name = portGuardName('pi-1.home')
const portOf = (index: number): PodPort => ({
  port: `pod${index}`,
  mac: `02:42:0a:07:00:0${index}`,
  ip: `10.7.0.${index}`,
  ipv6: `fd00:7::${index}`,
})
const victim = portOf(2)
const thief = portOf(3)

/** A bridge `pods` with the addresses of a router, and two pods at it that have all rights in their networks. */
async function withPods(t: Test) {
  const machine = await ownSpace(t)
  const pods = [await ownSpace(t), await ownSpace(t)] as const
  await machine.run('ip', 'link', 'add', 'pods', 'address', '02:42:0a:07:00:01', 'type', 'bridge')
  await machine.run('ip', 'link', 'set', 'pods', 'up')
  await machine.run('ip', 'address', 'add', `${gateway.ipv4}/24`, 'dev', 'pods')
  await machine.run('ip', 'address', 'add', `${gateway.ipv6}/64`, 'dev', 'pods', 'nodad')
  for (const [index, { port, mac, ip, ipv6 }] of [victim, thief].entries()) {
    const { name: space, run } = pods[index] ?? pods[0]
    const pair = ['type', 'veth', 'peer', 'name', 'eth0', 'address', mac, 'netns', space]
    await machine.run('ip', 'link', 'add', port, ...pair)
    await machine.run('ip', 'link', 'set', port, 'master', 'pods', 'up')
    await run('ip', 'link', 'set', 'eth0', 'up')
    await run('ip', 'address', 'add', `${ip}/24`, 'dev', 'eth0')
    await run('ip', 'address', 'add', `${ipv6}/64`, 'dev', 'eth0', 'nodad')
    await run('ip', 'route', 'add', 'default', 'via', gateway.ipv4)
    await run('ip', '-6', 'route', 'add', 'default', 'via', gateway.ipv6)
  }
  const links = testFolder(t, { sys: { class: { net: { pods: {}, pod2: {}, pod3: {} } } } })
  const table = nftPortGuard(links, await machine.tool('nft'))
  const apply = (ports: readonly PodPort[]) => table.apply(portGuardTable(name, ports, Object.values(gateway)))
  return { machine, victim: pods[0], thief: pods[1], table, apply }
}

async function reaches({ run }: OwnSpace, address: string, ...options: readonly string[]): Promise<boolean> {
  return run('ping', '-c', '1', '-W', '1', ...options, address).then(
    () => true,
    () => false,
  )
}

/** What the victim has learned of its router. */
async function routerOf({ run }: OwnSpace, address: string): Promise<string> {
  const [, mac = 'none'] = /lladdr (\S+)/.exec(await run('ip', 'neighbour', 'show', address)) ?? []
  return mac
}

type Pods = Awaited<ReturnType<typeof withPods>>

/** The thief takes an address of another, sends the victim a packet from it by its own link, and gives it up again. */
async function pretend({ thief: { run } }: Pods, address: string, to: string): Promise<void> {
  const isIPv6 = address.includes(':')
  const own = [`${address}/${isIPv6 ? 64 : 24}`, 'dev', 'eth0']
  await run('ip', 'address', 'add', ...own, ...(isIPv6 ? ['nodad'] : []))
  await run('ip', 'neighbour', 'flush', 'all')
  await run('ping', '-c', '1', '-W', '1', '-I', address, to).catch(() => undefined)
  await run('ip', 'address', 'del', ...own)
}

const attempts = [
  { what: 'ARP', address: gateway.ipv4, to: victim.ip },
  { what: 'neighbour discovery', address: gateway.ipv6, to: victim.ipv6 ?? '' },
] as const

for (const state of ['known', 'not known yet'] as const)
  test(`a pod whose port is ${state} is not taken for the router of its neighbours`, { skip }, async (t) => {
    const pods = await withPods(t)
    const router = '02:42:0a:07:00:01'
    for (const { address } of attempts) await eventually('the router is reached', () => reaches(pods.victim, address))
    for (const { what, address, to } of attempts) {
      await pretend(pods, address, to)
      t.equal(await routerOf(pods.victim, address), thief.mac, `${what} without rules`)
    }
    await pods.victim.run('ip', 'neighbour', 'flush', 'all')
    await pods.apply(state === 'known' ? [victim, thief] : [victim])
    for (const { what, address, to } of attempts) {
      await eventually('the router is reached', () => reaches(pods.victim, address))
      await pretend(pods, address, to)
      t.equal(await routerOf(pods.victim, address), router, what)
      await eventually('and is reached still', () => reaches(pods.victim, address))
      await eventually('by the other pod too', () => reaches(pods.thief, address))
    }
  })

test('a pod has neither the link nor the addresses of its neighbour, nor any other', { skip }, async (t) => {
  const pods = await withPods(t)
  const { machine } = pods
  await pods.apply([victim, thief])
  await eventually('pods reach each other', () => reaches(pods.thief, victim.ip))
  await eventually('by IPv6', () => reaches(pods.thief, victim.ipv6 ?? ''))
  await machine.run('nft', 'add table ip seen; add chain ip seen in { type filter hook input priority 0 ; }')
  await machine.run('nft', 'add rule ip seen in ip saddr { 10.7.0.2, 10.7.0.9 } counter')
  const arrived = async () => /packets (\d+)/.exec(await machine.run('nft', 'list', 'table', 'ip', 'seen'))?.[1]
  for (const address of [victim.ip, '10.7.0.9']) {
    await pretend(pods, address, gateway.ipv4)
    t.equal(await arrived(), '0', `as ${address}`)
    const known = await machine.run('ip', 'neighbour', 'show', address)
    t.notMatch(known, thief.mac, `the node does not take it for ${address}`)
  }
  await pods.thief.run('ip', 'link', 'set', 'eth0', 'address', victim.mac)
  t.equal(await reaches(pods.thief, gateway.ipv4), false, 'with the link of the neighbour')
  const learned = await machine.run('bridge', 'fdb', 'show', 'br', 'pods')
  t.notMatch(learned, new RegExp(`^${victim.mac} dev ${thief.port} `, 'm'), 'the bridge does not learn it')
  await eventually('the neighbour has its link', () => reaches(pods.victim, gateway.ipv4))
  await pods.thief.run('ip', 'link', 'set', 'eth0', 'address', thief.mac)
  await eventually('the pod has its own again', () => reaches(pods.thief, gateway.ipv4))
})

/** An IPv4 frame with an IEEE 802.1Q tag, from the addresses of the pod itself. */
const sendTagged = String.raw`
  my $index = do { open my $file, '<', '/proc/net/igmp'; my ($own) = map { /^(\d+)\s+eth0/ ? $1 : () } <$file>; $own };
  socket(my $socket, 17, 3, 0) or die $!;
  my $frame = pack('H*', '02420a070002' . '02420a070003' . '81000007' . '0800' . '4500001c00000000401100000a0700030a070002' . '00' x 8);
  send($socket, $frame . pack('x64'), 0, pack('S n l S C C a8', 17, 0x0800, $index, 0, 0, 6, '')) or die $!;
`

test('frames with a tag do not pass the rules of IP by', { skip }, async (t) => {
  const pods = await withPods(t)
  const { machine } = pods
  await machine.run('nft', 'add table bridge seen; add chain bridge seen in { type filter hook forward priority 0 ; }')
  await machine.run('nft', 'add rule bridge seen in ether type 8021q counter')
  const passed = async () => /packets (\d+)/.exec(await machine.run('nft', 'list', 'table', 'bridge', 'seen'))?.[1]
  await pods.thief.run('perl', '-e', sendTagged)
  t.equal(await passed(), '1', 'without rules')
  await pods.apply([victim, thief])
  await pods.thief.run('perl', '-e', sendTagged)
  t.equal(await passed(), '1')
})

test('a port that is not known keeps its connections, and so do other bridges', { skip }, async (t) => {
  const pods = await withPods(t)
  const { machine, table } = pods
  const outside = [await ownSpace(t), await ownSpace(t)] as const
  await machine.run('ip', 'link', 'add', 'lan', 'type', 'bridge')
  await machine.run('ip', 'link', 'set', 'lan', 'up')
  for (const [index, { name: space, run }] of outside.entries()) {
    await machine.run('ip', 'link', 'add', `lan${index}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space)
    await machine.run('ip', 'link', 'set', `lan${index}`, 'master', 'lan', 'up')
    await run('ip', 'link', 'set', 'eth0', 'up')
    await run('ip', 'address', 'add', `10.9.0.${index + 1}/24`, 'dev', 'eth0')
    await run('ip', 'address', 'add', `fe80::${index + 1}/64`, 'dev', 'eth0', 'nodad')
  }
  await pods.apply([victim])
  await eventually('the pod of the unknown port', () => reaches(pods.thief, gateway.ipv4))
  await eventually('machines of another bridge', () => reaches(outside[1], '10.9.0.1'))
  await eventually('one that has fe80::1, as the bridges of Docker have', () => reaches(outside[1], 'fe80::1%eth0'))
  t.equal(await table.isIntact(name), true, 'the kernel enters the table')
})

test('what another program removed is noticed, and tables of agents whose pods are gone are removed', {
  skip,
}, async (t) => {
  const { machine, table, apply } = await withPods(t)
  await apply([victim])
  const other = portGuardName('earlier')
  const tables = () => machine.run('nft', 'list', 'tables', 'bridge')
  for (const [port, isThere] of [
    ['pod3', true],
    ['gone', false],
  ] as const) {
    await table.apply(portGuardTable(other, [{ ...thief, port }], []))
    const ofOthers = ['of-others', 'bramble-without-ports']
    for (const one of ofOthers) await machine.run('nft', 'add', 'table', 'bridge', one)
    await table.removeUnused(name)
    t.equal((await tables()).includes(other), isThere, port)
    for (const kept of [name, ...ofOthers]) t.match(await tables(), `table bridge ${kept}\n`)
  }
  await machine.run('nft', 'flush', 'chain', 'bridge', name, 'pod')
  t.equal(await table.isIntact(name), true, 'rules are not looked at')
  await machine.run('nft', 'flush', 'ruleset')
  t.equal(await table.isIntact(name), false)
  await table.remove(name)
  await apply([])
  t.equal(await table.isIntact(name), true)
  await table.remove(name)
  t.equal(await tables(), '')
})
