/**
 * A network for nodes behind NAT: they are in a network namespace, a router with NAT in another one, and the line from there to
 * this host in a third one, where it can be made slow, lossy or dead. Nothing can connect to the nodes.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { machineAddresses } from './addresses.ts'
import { command, commandOrThrow, inSpace } from './machine-commands.ts'
import { isRoot, skipWithout } from './missing-parts.ts'

export type NatNetwork = {
  /** Address of this host, for the nodes. */
  readonly hostAddress: string
  /** Its interface to the router. */
  readonly hostInterface: string
  /** Address of the router, from which all connections of the nodes come. */
  readonly natAddress: string
  /** Address of the nodes, behind the NAT: this host does not see it. */
  readonly nodeAddress: string
  /** The network namespace of the nodes. */
  readonly space: string
  /** Delays each packet by 100 ms in each direction and loses 1 % of them; with this program. */
  slow(): Promise<'netem' | 'perl'>
  /** Loses all packets in silence: both ends keep their carrier. */
  cut(): Promise<void>
  /** As it was in the beginning. */
  restore(): Promise<void>
  /** Established connections of the nodes to a port of this host, as the nodes see them and as this host does. */
  connections(port: number): Promise<{ readonly ofNodes: number; readonly ofHost: number }>
}

type Ending = { teardown(end: () => Promise<unknown>): unknown }

const inSbin = (name: string) => ['/usr/sbin', '/sbin', '/usr/bin'].some((folder) => existsSync(`${folder}/${name}`))

/** For `test(name, { skip: whyNoNat() }, …)`. Throws where a part is missing without an opt-out. */
export function whyNoNat(): string | false {
  return (
    skipWithout('root', isRoot()) ||
    skipWithout('iproute2', ['ip', 'tc', 'ss'].every(inSbin)) ||
    skipWithout('iptables', inSbin('iptables')) ||
    skipWithout('perl', inSbin('perl'))
  )
}

const run = (...line: readonly string[]) => commandOrThrow(line[0] ?? '', line.slice(1), { withinMs: 20_000 })
const ip = (...args: readonly string[]) => run('ip', ...args)

/** Gone when the test ends. Needs the parts of `whyNoNat`. */
export async function natNetwork(t: Ending): Promise<NatNetwork> {
  const { id, subnet } = await unusedSubnet()
  const [home, nat, line] = [`bn-${id}-home`, `bn-${id}-nat`, `bn-${id}-line`]
  let relay: ChildProcess | undefined
  const stopRelay = () => {
    relay?.kill('SIGKILL')
    relay = undefined
  }
  t.teardown(async () => {
    stopRelay()
    // Their interfaces go with them, but only some time later.
    await command('ip', ['link', 'delete', `bn-${id}`])
    for (const space of [home, nat, line]) await command('ip', ['netns', 'delete', space])
  })
  for (const space of [home, nat, line]) {
    await ip('netns', 'add', space)
    await ip('-n', space, 'link', 'set', 'lo', 'up')
  }
  await ip('link', 'add', `bn-${id}`, 'type', 'veth', 'peer', 'name', 'host', 'netns', line)
  await ip('-n', line, 'link', 'add', 'router', 'type', 'veth', 'peer', 'name', 'wan', 'netns', nat)
  await ip('-n', nat, 'link', 'add', 'lan', 'type', 'veth', 'peer', 'name', 'host0', 'netns', home)
  await ip('-n', line, 'link', 'add', 'bridge', 'type', 'bridge')
  for (const name of ['host', 'router', 'bridge']) await ip('-n', line, 'link', 'set', name, 'up')
  await ip('address', 'add', `${subnet}.1/24`, 'dev', `bn-${id}`)
  await ip('link', 'set', `bn-${id}`, 'up')
  for (const [space, name, address] of [
    [nat, 'wan', `${subnet}.2`],
    [nat, 'lan', '192.0.2.1'],
    [home, 'host0', '192.0.2.2'],
  ] as const) {
    await ip('-n', space, 'address', 'add', `${address}/24`, 'dev', name)
    await ip('-n', space, 'link', 'set', name, 'up')
  }
  await ip('-n', home, 'route', 'add', 'default', 'via', '192.0.2.1')
  await translate(nat)
  const pass = (...to: readonly string[]) =>
    Promise.all(['host', 'router'].map((name) => ip('-n', line, 'link', 'set', name, ...to)))
  await pass('master', 'bridge')

  return {
    hostAddress: `${subnet}.1`,
    hostInterface: `bn-${id}`,
    natAddress: `${subnet}.2`,
    nodeAddress: '192.0.2.2',
    space: home,
    async slow() {
      const netem = (name: string) =>
        command('ip', ['netns', 'exec', line, 'tc', 'qdisc', 'add', 'dev', name, 'root', 'netem', ...slowness])
      const [added] = await Promise.all(['host', 'router'].map(netem))
      if (added?.code === 0) return 'netem'
      if (!added?.stderr.includes('qdisc kind is unknown')) throw new Error(`tc failed: ${added?.stderr}`)
      await pass('nomaster')
      relay = await startRelay(line)
      return 'perl'
    },
    async cut() {
      stopRelay()
      await pass('nomaster')
    },
    async restore() {
      stopRelay()
      for (const name of ['host', 'router']) await command('tc', ['-n', line, 'qdisc', 'del', 'dev', name, 'root'])
      await pass('master', 'bridge')
    },
    async connections(port) {
      const count = async (space: string | undefined, ...filter: readonly string[]) =>
        (await run(...inSpace(space, 'ss', '-Htn', 'state', 'established', ...filter))).split('\n').length - 1
      return {
        ofNodes: await count(home, 'dport', '=', `:${port}`),
        ofHost: await count(undefined, 'dst', `${subnet}.2`, 'and', 'sport', '=', `:${port}`),
      }
    },
  }
}

const slowness = ['delay', '100ms', 'loss', '1%']

async function unusedSubnet(): Promise<{ readonly id: string; readonly subnet: string }> {
  for (let tries = 0; tries < 20; tries++) {
    const subnet = machineAddresses()
    const id = subnet.split('.').slice(1).join('')
    if ((await ip('-4', 'route', 'show', `${subnet}.0/24`)).trim() === '') return { id, subnet }
  }
  throw new Error('There is no unused subnet')
}

/** As a router at home: connections go out under its address, and none comes in. */
async function translate(nat: string): Promise<void> {
  const iptables = (...args: readonly string[]) => run(...inSpace(nat, 'iptables', '--wait', ...args))
  await run(...inSpace(nat, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward'))
  await iptables('-t', 'nat', '-A', 'POSTROUTING', '-o', 'wan', '-j', 'MASQUERADE')
  await iptables('-P', 'FORWARD', 'DROP')
  await iptables('-A', 'FORWARD', '-i', 'lan', '-j', 'ACCEPT')
  await iptables('-A', 'FORWARD', '-m', 'conntrack', '--ctstate', 'ESTABLISHED,RELATED', '-j', 'ACCEPT')
}

/**
 * Where the kernel has no netem: a program that hands frames from one interface to the other, late or not at all. The option
 * PACKET_VNET_HDR (15 of SOL_PACKET, 263) keeps the checksums and segments that the kernel has not computed yet.
 */
const relayScript = `
use strict; use Socket; use Time::HiRes 'time'; $| = 1;
my ($delay, $loss, @names) = @ARGV;
my (@sockets, @waiting);
for my $name (@names) {
  open(my $file, '<', "/proc/net/dev_mcast") or die;
  my ($index) = map { /^(\\d+)\\s+\\Q$name\\E\\s/ ? $1 : () } <$file>;
  socket(my $socket, 17, SOCK_RAW, unpack('S', pack('n', 3))) or die "socket: $!";
  setsockopt($socket, 263, 15, pack('i', 1)) or die "PACKET_VNET_HDR: $!";
  bind($socket, pack('SnlSCCa8', 17, 3, $index, 0, 0, 0, '')) or die "bind: $!";
  push @sockets, $socket;
}
print "ready\\n";
while (1) {
  my $bits = ''; vec($bits, fileno($_), 1) = 1 for @sockets;
  my $wait = @waiting ? $waiting[0][0] - time : 1;
  select($bits, undef, undef, $wait > 0 ? $wait : 0);
  for my $from (0, 1) {
    next unless vec($bits, fileno($sockets[$from]), 1);
    my $sender = recv($sockets[$from], my $frame, 70000, 0);
    next unless defined $sender;
    next if (unpack('SnlSCC', $sender))[4] == 4 || rand() < $loss;
    push @waiting, [time + $delay, 1 - $from, $frame];
  }
  while (@waiting && $waiting[0][0] <= time) {
    my (undef, $to, $frame) = @{shift @waiting};
    send($sockets[$to], $frame, 0);
  }
}`

async function startRelay(line: string): Promise<ChildProcess> {
  const command = inSpace(line, 'perl', '-e', relayScript, '0.1', '0.01', 'host', 'router')
  const relay = spawn('setpriv', ['--pdeathsig', 'KILL', ...command], { stdio: ['ignore', 'pipe', 'pipe'] })
  let errors = ''
  relay.stderr.on('data', (piece: Buffer) => {
    errors += piece.toString()
  })
  await new Promise<void>((resolve, reject) => {
    relay.stdout.once('data', () => resolve())
    relay.once('error', reject).once('close', () => reject(new Error(`The relay ended: ${errors}`)))
  })
  return relay
}
