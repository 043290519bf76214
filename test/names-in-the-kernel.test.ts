/** What reaches the address of a node's name server: real rules in network namespaces, without an engine or an agent. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'tap'
import { nftTable } from '../agent/adapters/network/nft/nft.ts'
import { baseRules } from '../agent/network/base-rules.ts'
import { ipv6MdnsRules, mdnsRules } from '../agent/network/mdns/mdns-rules.ts'
import { connectionLimits, nameRules } from '../agent/network/names/name-rules.ts'
import { questionLimits } from '../agent/network/names/source-limit.ts'
import { allRules } from '../agent/network/rule-changes.ts'
import { ipv4Rules, ipv6Rules } from '../agent/network/rule-family.ts'
import { nodeDnsAddress } from '../api/network/cluster-dns.ts'
import { inSpace } from './support/machine-commands.ts'
import { type OwnSpace, ownSpace, whyNoRules } from './support/own-space.ts'
import { eventually } from './support/wait.ts'

const network = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [{ name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.7.1', segment: 's' }],
}

/** In the place of the name server; it prints when it listens. */
const server = `
require('net').createServer((socket) => {
  socket.on('error', () => undefined)
  socket.destroy()
}).listen(53, '${nodeDnsAddress}', () => {
  require('dgram').createSocket('udp4').bind(53, '${nodeDnsAddress}', () => console.log('listening'))
})
`

/**
 * Counts what comes to the name server: datagrams by their first byte, and connections. In the kernel, behind all other rules: a program
 * that does not run for a moment loses some.
 */
async function counting({ run }: OwnSpace, firstBytes: string) {
  const datagrams = [...firstBytes].map(
    (byte) => `udp dport 53 @th,64,8 ${byte.charCodeAt(0)} counter comment "${byte}"`,
  )
  const connections = 'tcp dport 53 tcp flags & (syn | ack) == syn counter comment "connections"'
  await run('nft', 'add table ip seen; add chain ip seen in { type filter hook input priority 1000; }')
  for (const rule of [...datagrams, connections]) await run('nft', `add rule ip seen in ${rule}`)
  return async (): Promise<Readonly<Record<string, number>>> => {
    const rules = await run('nft', 'list', 'table', 'ip', 'seen')
    return Object.fromEntries(
      [...rules.matchAll(/counter packets (\d+) bytes \d+ comment "(\w+)"/g)].map(([, count, what = '']) => [
        what,
        Number(count),
      ]),
    )
  }
}

/** Sends this many datagrams with this text, from this address. */
const sender = (text: string, count: number, from: string) => `
const socket = require('dgram').createSocket('udp4')
socket.bind(0, '${from}', async () => {
  for (let index = 0; index < ${count}; index++) {
    await new Promise((resolve) => socket.send('${text}', 53, '${nodeDnsAddress}', resolve))
  }
  socket.close()
})
`

/** Opens this many connections at once, and waits for each for a moment. */
const opener = (count: number) => `
for (let index = 0; index < ${count}; index++) {
  const socket = require('net').connect(53, '${nodeDnsAddress}')
  socket.on('error', () => undefined)
  socket.setTimeout(500, () => socket.destroy())
}
`

/**
 * Asks on port 53, then on port 54, over both protocols; prints what became of each once port 54 was refused over both, and again when
 * there is a connection to port 53.
 */
const asker = `
const outcome = {}
const print = () => console.log(JSON.stringify(outcome))
const refused = () => {
  if (outcome.udp54 && outcome.tcp54) print()
}
for (const port of [53, 54]) {
  const datagrams = require('dgram').createSocket('udp4')
  datagrams.on('error', ({ code }) => {
    outcome['udp' + port] = code
    refused()
  })
  datagrams.connect(port, '${nodeDnsAddress}', () => datagrams.send('x'))
}
for (const port of [53, 54]) {
  const socket = require('net').connect(port, '${nodeDnsAddress}', () => {
    outcome['tcp' + port] = 'connected'
    print()
    process.exit()
  })
  socket.on('error', ({ code }) => {
    outcome['tcp' + port] = code
    refused()
  })
}
`

const connected = async (machine: OwnSpace, name: string, address: string, gateway: string) => {
  await machine.run('ip', 'link', 'add', name, 'type', 'bridge')
  await machine.run('ip', 'address', 'add', `${gateway}/24`, 'dev', name)
  await machine.run('ip', 'link', 'set', name, 'up')
  return async (t: Parameters<typeof ownSpace>[0]) => {
    const space = await ownSpace(t)
    await machine.run('ip', 'link', 'add', `${name}0`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space.name)
    await machine.run('ip', 'link', 'set', `${name}0`, 'master', name, 'up')
    await space.run('ip', 'address', 'add', `${address}/24`, 'dev', 'eth0')
    await space.run('ip', 'link', 'set', 'eth0', 'up')
    await space.run('ip', 'route', 'add', 'default', 'via', gateway)
    return space
  }
}

/** What it prints on lines of their own. */
const started = (t: Parameters<typeof ownSpace>[0], space: OwnSpace, script: string) => {
  const [file = '', ...args] = inSpace(space.name, process.execPath, '-e', script)
  const program = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    program.kill('SIGKILL')
    if (program.exitCode === null && program.signalCode === null) await once(program, 'exit')
  })
  let printed = ''
  program.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString()
  })
  return { lines: () => printed.split('\n').slice(0, -1) }
}

test('while no name server listens, questions of pods are not refused, and a connection waits for it', {
  skip: whyNoRules(),
}, async (t) => {
  const machine = await ownSpace(t)
  const pod = await (await connected(machine, 'pods', '10.244.1.9', '10.244.1.1'))(t)
  await machine.run('ip', 'address', 'add', `${nodeDnsAddress}/32`, 'dev', 'lo', 'scope', 'host')
  const table = nftTable(ipv4Rules, await machine.tool('nft'))
  await table.apply(
    allRules(await table.list(), [baseRules(ipv4Rules), nameRules(network, 'pi-1')], ipv4Rules).commands,
  )
  for (const space of [machine, pod]) {
    const asking = started(t, space, asker)
    const [first = ''] = await eventually('port 54 is refused', async () =>
      asking.lines().length > 0 ? asking.lines() : undefined,
    )
    t.same(JSON.parse(first), { udp54: 'ECONNREFUSED', tcp54: 'ECONNREFUSED' })
    if (space === machine) continue
    const listening = started(t, machine, server)
    await eventually('it listens', async () => listening.lines().length > 0)
    const last = await eventually('the connection', async () => asking.lines()[1])
    t.match(JSON.parse(last), { tcp53: 'connected' })
  }
})

test('only pods of the node and the machine reach its name server, and a flood does not', {
  skip: whyNoRules(),
}, async (t) => {
  const machine = await ownSpace(t)
  const pod = await (await connected(machine, 'pods', '10.244.1.9', '10.244.1.1'))(t)
  const stranger = await (await connected(machine, 'wire', '192.168.7.9', '192.168.7.1'))(t)
  await machine.run('ip', 'address', 'add', `${nodeDnsAddress}/32`, 'dev', 'lo', 'scope', 'host')
  const table = nftTable(ipv4Rules, await machine.tool('nft'))
  await table.apply(
    allRules(await table.list(), [baseRules(ipv4Rules), nameRules(network, 'pi-1')], ipv4Rules).commands,
  )
  const listening = started(t, machine, server)
  await eventually('it listens', async () => listening.lines().length > 0)
  const counted = await counting(machine, 'pmsfab')
  const send = (space: OwnSpace, text: string, count: number, from: string) =>
    space.run(process.execPath, '-e', sender(text, count, from))

  await send(pod, 'p', 100, '10.244.1.9')
  await send(machine, 'm', 3_000, nodeDnsAddress)
  await send(stranger, 's', 100, '192.168.7.9')
  await stranger.run('ip', 'address', 'add', '10.244.1.77/32', 'dev', 'lo')
  await send(stranger, 'f', 100, '10.244.1.77')
  await pod.run('ip', 'address', 'add', '10.244.1.10/24', 'dev', 'eth0')
  await send(pod, 'a', 40_000, '10.244.1.10')
  await send(pod, 'b', 10, '10.244.1.9')
  await pod.run(process.execPath, '-e', opener(1_000))
  await eventually('the last datagrams', async () => (await counted())['b'] === 10)
  const counts = await counted()
  t.equal(counts['p'], 100, 'a pod')
  t.equal(counts['m'], 3_000, 'the machine has no limit')
  t.equal(counts['s'], 0, 'a stranger on the link')
  t.equal(counts['f'], 0, 'a stranger with the address of a pod')
  t.ok((counts['a'] ?? 0) >= questionLimits.atOnce && (counts['a'] ?? 0) < 39_000, `${counts['a']} of a flood`)
  t.equal(counts['b'], 10, 'another pod meanwhile')
  const connections = counts['connections'] ?? 0
  t.ok(connections >= connectionLimits.atOnce && connections < 900, `${connections} of 1,000 connections`)
})

/** As avahi does, on every link: prints the text of each message to port 5353. */
const house = `
const socket = require('dgram').createSocket({ type: 'udp4', reuseAddr: true })
socket.on('message', (message) => console.log(message.toString('latin1')))
socket.bind(5353, () => {
  for (const address of ['10.244.1.1', '192.168.7.1']) socket.addMembership('224.0.0.251', address)
  console.log('listening')
})
`

/** Sends the text to all of the link, or to `to`, from this address. */
const announcer = (text: string, from: string, to = '224.0.0.251') => `
const socket = require('dgram').createSocket('udp4')
socket.bind(0, '${from}', () => {
  socket.setMulticastInterface('${from}')
  socket.send('${text}', 5353, '${to}', () => socket.close())
})
`

test('a pod does not answer for names of the house, with its own address or that of a machine', {
  skip: whyNoRules(),
}, async (t) => {
  const machine = await ownSpace(t)
  const pod = await (await connected(machine, 'pods', '10.244.1.9', '10.244.1.1'))(t)
  const other = await (await connected(machine, 'wire', '192.168.7.9', '192.168.7.1'))(t)
  await machine.run('sysctl', '-qw', 'net.ipv4.conf.all.rp_filter=0', 'net.ipv4.conf.pods.rp_filter=0')
  await pod.run('ip', 'address', 'add', '192.168.7.66/32', 'dev', 'eth0')
  const listening = started(t, machine, house)
  const received = (text: string) => eventually(text, async () => listening.lines().includes(text))
  await received('listening')
  const announce = (space: OwnSpace, text: string, from: string, to?: string) =>
    space.run(process.execPath, '-e', announcer(text, from, to))
  await announce(pod, 'forged before', '192.168.7.66')
  await announce(pod, 'own before', '10.244.1.9', '192.168.7.1')
  await received('own before')
  await received('forged before')

  const table = nftTable(ipv4Rules, await machine.tool('nft'))
  await table.apply(allRules(await table.list(), [baseRules(ipv4Rules), mdnsRules(network)], ipv4Rules).commands)
  await announce(pod, 'forged', '192.168.7.66')
  await announce(pod, 'own', '10.244.1.9')
  await announce(pod, 'to the node', '10.244.1.9', '192.168.7.1')
  await announce(machine, 'machine', '192.168.7.1')
  await announce(other, 'house', '192.168.7.9')
  await received('machine')
  await received('house')
  t.same(listening.lines().sort(), ['forged before', 'house', 'listening', 'machine', 'own before'])
})

/** As avahi does, on every link: prints the text of each message to port 5353 by IPv6. */
const ipv6House = `
const socket = require('dgram').createSocket({ type: 'udp6', reuseAddr: true, ipv6Only: true })
socket.on('message', (message) => console.log(message.toString('latin1')))
socket.bind(5353, () => {
  for (const device of ['pods', 'wire']) socket.addMembership('ff02::fb', '::%' + device)
  console.log('listening')
})
`

/** Sends the text to all of the link of `device`, or to `to`, from this address. */
const ipv6Announcer = (text: string, from: string, device: string, to = 'ff02::fb') => `
const socket = require('dgram').createSocket('udp6')
socket.bind(0, '${from}', () => {
  socket.setMulticastInterface('::%${device}')
  socket.send('${text}', 5353, '${to}', () => socket.close())
})
`

test('nor does it by IPv6, with an address of its link either', { skip: whyNoRules() }, async (t) => {
  const machine = await ownSpace(t)
  const pod = await (await connected(machine, 'pods', '10.244.1.9', '10.244.1.1'))(t)
  const other = await (await connected(machine, 'wire', '192.168.7.9', '192.168.7.1'))(t)
  const addresses: readonly (readonly [OwnSpace, string, string])[] = [
    [machine, 'fd00:10:244:1::1/64', 'pods'],
    [machine, 'fd00:7::1/64', 'wire'],
    [pod, 'fd00:10:244:1::9/64', 'eth0'],
    [pod, 'fd00:7::66/128', 'eth0'],
    [other, 'fd00:7::9/64', 'eth0'],
  ]
  for (const [space, address, device] of addresses)
    await space.run('ip', '-6', 'address', 'add', address, 'dev', device, 'nodad')
  await pod.run('ip', '-6', 'route', 'add', 'default', 'via', 'fd00:10:244:1::1')
  const linkAddress = ({ run }: OwnSpace, device = 'eth0') =>
    eventually(
      'an address of the link',
      async () =>
        /inet6 (fe80\S+)\/64 scope link *$/m.exec(await run('ip', '-6', 'address', 'show', 'dev', device))?.[1],
    )
  const [ofPod, ofOther, ofMachine] = [
    await linkAddress(pod),
    await linkAddress(other),
    await linkAddress(machine, 'wire'),
  ]
  const listening = started(t, machine, ipv6House)
  const received = (text: string) => eventually(text, async () => listening.lines().includes(text))
  await received('listening')
  const announce = (space: OwnSpace, text: string, from: string, to?: string) =>
    space.run(process.execPath, '-e', ipv6Announcer(text, from, space === machine ? 'wire' : 'eth0', to))
  const ofPods = async (when: string) => {
    await announce(pod, `link ${when}`, `${ofPod}%eth0`)
    await announce(pod, `forged ${when}`, 'fd00:7::66')
    await announce(pod, `own ${when}`, 'fd00:10:244:1::9')
    await announce(pod, `to the node ${when}`, 'fd00:10:244:1::9', 'fd00:7::1')
  }
  await ofPods('before')
  for (const what of ['link', 'forged', 'own', 'to the node']) await received(`${what} before`)

  const apply = async (podLink: string | undefined) => {
    const table = nftTable(ipv6Rules, await machine.tool('nft'))
    const rules = [baseRules(ipv6Rules), ipv6MdnsRules({ clusterCIDR: 'fd00:10:244::/56' }, podLink)]
    await table.apply(allRules(await table.list(), rules, ipv6Rules).commands)
  }
  await apply('pods')
  await ofPods('dropped')
  await apply(undefined)
  for (const text of ['forged', 'own'])
    await announce(pod, `${text} while the bridge is not known`, text === 'own' ? 'fd00:10:244:1::9' : 'fd00:7::66')
  await announce(machine, 'machine', `${ofMachine}%wire`)
  await announce(machine, 'machine by its address', 'fd00:7::1')
  await announce(other, 'house', `${ofOther}%eth0`)
  await announce(other, 'house by its address', 'fd00:7::9')
  for (const text of ['machine', 'machine by its address', 'house', 'house by its address']) await received(text)
  t.same(
    listening.lines().filter((line) => !/before|listening|^(machine|house)/.test(line)),
    [],
  )
})
