/** Names that a node publishes by multicast DNS: machines that are network namespaces on one link, without an engine or an agent. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'tap'
import { inSpace } from './support/machine-commands.ts'
import { type OwnSpace, ownSpace, whyNoRules } from './support/own-space.ts'
import { eventually } from './support/wait.ts'

type Ending = Parameters<typeof ownSpace>[0]

/** What agents run, with the node's name and its IPv4 address; it prints warnings. */
const publisher = (name: string, address: string) => {
  const modules = [
    'agent/network/mdns/mdns-manager',
    'agent/adapters/network/mdns-sockets',
    'daemon/clock',
    'daemon/cell',
  ]
  const paths = modules.map((path) => new URL(`../${path}.js`, import.meta.url).href)
  return `
Promise.all(${JSON.stringify(paths)}.map((path) => import(path))).then(([{ mdnsManager }, { mdnsHost }, { systemClock }, { cell }]) => {
  const stop = new AbortController()
  process.on('SIGTERM', () => stop.abort())
  const quiet = () => undefined
  mdnsManager({
    nodeName: '${name}',
    host: mdnsHost('/'),
    nodeAddress: () => '${address}',
    reads: { serviceStates: cell(undefined), networkMessage: cell(undefined), podLink: cell(undefined) },
    writes: { mdnsRules: { IPv4: cell(undefined), IPv6: cell(undefined) } },
    clock: systemClock,
    random: Math.random,
    log: { debug: quiet, info: quiet, warn: (text, facts) => console.log(text, String(facts.error?.cause ?? '')), error: quiet },
  }, { interfaces: undefined, services: false }).run(stop.signal)
})
`
}

/** A program that takes part in multicast DNS: prints time to live and address of each record for `pi-1.local` that all of the link get. */
const listener = `
const socket = require('dgram').createSocket({ type: 'udp4', reuseAddr: true })
socket.on('message', (message, { address }) => {
  const at = message.indexOf(Buffer.from('\\x04pi-1\\x05local\\0'))
  if (at < 0) return
  if ((message[2] & 0x80) === 0) return console.log('probe', address)
  console.log('answer', message.readUInt32BE(at + 16), [...message.subarray(at + 22, at + 26)].join('.'))
})
socket.bind(5353, () => {
  socket.addMembership('224.0.0.251')
  console.log('listening')
})
`

/** Asks all of the link for the name from any port, and prints the address of the answer, or `silent` after this time. */
const asker = (name: string, patienceMs: number) => `
const socket = require('dgram').createSocket('udp4')
const labels = '${name}'.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
socket.on('message', (message) => {
  console.log([...message.subarray(-4)].join('.'))
  process.exit()
})
setTimeout(() => {
  console.log('silent')
  process.exit()
}, ${patienceMs})
socket.send(Buffer.from([0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1]), 5353, '224.0.0.251')
`

async function plugged(t: Ending, wire: OwnSpace, number: number): Promise<OwnSpace> {
  const space = await ownSpace(t)
  await wire.run('ip', 'link', 'add', `to-${number}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space.name)
  await wire.run('ip', 'link', 'set', `to-${number}`, 'master', 'wire', 'up')
  await space.run('ip', 'address', 'add', `192.168.7.${number}/24`, 'dev', 'eth0')
  await space.run('ip', 'link', 'set', 'eth0', 'up')
  await space.run('ip', 'route', 'add', 'default', 'via', '192.168.7.254')
  return space
}

function started(t: Ending, space: OwnSpace, script: string) {
  const [file = '', ...args] = inSpace(space.name, process.execPath, '-e', script)
  const program = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  program.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString()
  })
  const stop = async (signal: 'SIGTERM' | 'SIGKILL') => {
    if (program.exitCode !== null || program.signalCode !== null) return
    const exit = once(program, 'exit')
    program.kill(signal)
    await exit
  }
  t.teardown(() => stop('SIGKILL'))
  return { lines: () => printed.split('\n').slice(0, -1), stop: () => stop('SIGTERM') }
}

test('a node publishes its name to the house', { skip: whyNoRules() }, async (t) => {
  const wire = await ownSpace(t)
  await wire.run('ip', 'link', 'add', 'wire', 'up', 'type', 'bridge')
  const [node, other, client] = [await plugged(t, wire, 5), await plugged(t, wire, 6), await plugged(t, wire, 9)]
  const ask = async (from: OwnSpace, name = 'pi-1.local', patienceMs = 20_000) =>
    (await from.run(process.execPath, '-e', asker(name, patienceMs))).trim()
  const isSilent = async (name?: string) => (await ask(client, name, 1_000)) === 'silent'
  const house = started(t, client, listener)
  // As avahi does: port 5353 of all addresses, shared with others.
  const beside = started(t, node, listener)
  for (const { lines } of [house, beside]) await eventually('it listens', async () => lines().length > 0)

  const first = started(t, node, publisher('pi-1', '192.168.7.5'))
  for (const { lines } of [house, beside])
    await eventually('two announcements', async () => lines().filter((line) => line.startsWith('answer')).length > 1)
  t.same(house.lines(), [
    'listening',
    ...Array(3).fill('probe 192.168.7.5'),
    ...Array(2).fill('answer 120 192.168.7.5'),
  ])
  t.same(beside.lines(), house.lines(), 'another program of the machine gets the same')
  t.equal(await ask(client), '192.168.7.5')
  t.equal(await ask(node), '192.168.7.5', 'a program of the node itself')
  t.ok(await isSilent('pi-2.local'), 'a name of another')

  const forge =
    'add table ip forge; add chain ip forge out { type filter hook output priority 0; }; add rule ip forge out udp sport set 0'
  await client.run('nft', forge)
  t.ok(await isSilent(), 'a forged packet: no answer can be sent to port 0')
  await client.run('nft', 'delete table ip forge')
  t.equal(await ask(client), '192.168.7.5', 'the publisher is still there')

  const second = started(t, other, publisher('pi-1', '192.168.7.6'))
  await eventually('the other machine with the name gives up', async () => second.lines().length > 0)
  t.match(second.lines()[0], /^Another machine has a name of this node on the link/)
  t.equal(await ask(client), '192.168.7.5')

  await client.run('ip', 'address', 'flush', 'dev', 'eth0')
  await client.run('ip', 'address', 'add', '192.168.8.9/24', 'dev', 'eth0')
  await client.run('ip', 'route', 'add', 'default', 'dev', 'eth0')
  await node.run('ip', 'route', 'add', '192.168.8.0/24', 'dev', 'eth0')
  t.ok(await isSilent(), 'an address of another network')

  await first.stop()
  await eventually('the name is withdrawn', async () => beside.lines().includes('answer 0 192.168.7.5'))
})

test('a program that has port 5353 for itself is the reason why names are not published', {
  skip: whyNoRules(),
}, async (t) => {
  const wire = await ownSpace(t)
  await wire.run('ip', 'link', 'add', 'wire', 'up', 'type', 'bridge')
  const node = await plugged(t, wire, 5)
  const alone = started(t, node, "require('dgram').createSocket('udp4').bind(5353, () => console.log('listening'))")
  await eventually('it listens', async () => alone.lines().length > 0)
  const adapter = new URL('../agent/adapters/network/mdns-sockets.js', import.meta.url).href
  const doctor = `import('${adapter}').then(async ({ mdnsPortProblem }) => console.log(await mdnsPortProblem()))`
  t.equal((await node.run(process.execPath, '-e', doctor)).trim(), 'EADDRINUSE')
  const names = started(t, node, publisher('pi-1', '192.168.7.5'))
  await eventually('it is logged', async () => /not published.*EADDRINUSE/.test(names.lines().join()))
  await alone.stop()
  await eventually(
    'they are published by IPv4 then',
    async () => (await node.run(process.execPath, '-e', asker('pi-1.local', 1_000))).trim() === '192.168.7.5',
  )
  t.equal((await node.run(process.execPath, '-e', doctor)).trim(), 'undefined')
  await names.stop()
  const ofIPv6 = "createSocket({ type: 'udp6', ipv6Only: true }).bind(5353, () => console.log('listening'))"
  const alone6 = started(t, node, `require('dgram').${ofIPv6}`)
  await eventually('it listens', async () => alone6.lines().length > 0)
  t.equal((await node.run(process.execPath, '-e', doctor)).trim(), 'EADDRINUSE', 'by IPv6')
})

/** As `listener`, by IPv6: prints the time to live and the data of the records that all of the link get, those of IPv6 in hexadecimal. */
const ipv6Listener = `
const socket = require('dgram').createSocket({ type: 'udp6', reuseAddr: true, ipv6Only: true })
const name = Buffer.from('\\x04pi-1\\x05local\\0')
socket.on('message', (message) => {
  if (message.indexOf(name) < 0) return
  if ((message[2] & 0x80) === 0) return console.log('probe')
  const found = []
  for (let at = message.indexOf(name); at >= 0; at = message.indexOf(name, at + 1)) {
    const head = at + name.length
    const [type, ttl] = head + 10 <= message.length ? [message.readUInt16BE(head), message.readUInt32BE(head + 4)] : []
    const data = message.subarray(head + 10)
    if (type === 1) found.push(ttl + ' ' + [...data.subarray(0, 4)].join('.'))
    if (type === 28) found.push(ttl + ' ' + data.subarray(0, 16).toString('hex'))
  }
  console.log('answer', found.join())
})
socket.bind(5353, () => {
  socket.addMembership('ff02::fb', '::%eth0')
  console.log('listening')
})
`

/** Asks all of the link by IPv6 for the AAAA records of the name from any port, or from `from`; prints the answer and its source, or `silent`. */
const ipv6Asker = (name: string, patienceMs: number, from = '::') => `
const socket = require('dgram').createSocket('udp6')
const labels = '${name}'.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
socket.on('message', (message, { address }) => {
  console.log(message.subarray(-16).toString('hex'), address)
  process.exit()
})
setTimeout(() => {
  console.log('silent')
  process.exit()
}, ${patienceMs})
socket.bind(0, '${from}', () => {
  socket.setMulticastInterface('::%eth0')
  socket.send(Buffer.from([0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 28, 0, 1]), 5353, 'ff02::fb')
})
`

test('a node publishes its addresses of both families, by messages of both', { skip: whyNoRules() }, async (t) => {
  const wire = await ownSpace(t)
  await wire.run('ip', 'link', 'add', 'wire', 'up', 'type', 'bridge')
  const [node, other, client] = [await plugged(t, wire, 5), await plugged(t, wire, 6), await plugged(t, wire, 9)]
  for (const [space, number] of [
    [node, 5],
    [other, 6],
    [client, 9],
  ] as const)
    await space.run('ip', '-6', 'address', 'add', `fd00:7::${number}/64`, 'dev', 'eth0', 'nodad')
  // A load balancer's address is deprecated; a temporary address would change with the hour.
  const balancer = ['fd00:7::240/128', 'dev', 'eth0', 'home', 'noprefixroute', 'nodad', 'preferred_lft', '0']
  await node.run('ip', '-6', 'address', 'add', ...balancer)
  const linkAddress = async ({ run }: OwnSpace) =>
    await eventually(
      'an address of the link',
      async () =>
        /inet6 (fe80\S+)\/64 scope link *$/m.exec(await run('ip', '-6', 'address', 'show', 'dev', 'eth0'))?.[1],
    )
  const [ofNode, ofClient] = [await linkAddress(node), await linkAddress(client)]
  await linkAddress(other)
  const hexadecimal = 'fd000007000000000000000000000005'
  const ask = async (from: OwnSpace, name = 'pi-1.local', patienceMs = 20_000, source?: string) =>
    (await from.run(process.execPath, '-e', ipv6Asker(name, patienceMs, source))).trim()
  const house = started(t, client, ipv6Listener)
  const beside = started(t, node, ipv6Listener)
  for (const { lines } of [house, beside]) await eventually('it listens', async () => lines().length > 0)

  const first = started(t, node, publisher('pi-1', '192.168.7.5'))
  for (const { lines } of [house, beside])
    await eventually('two announcements', async () => lines().filter((line) => line.startsWith('answer')).length > 1)
  const announcement = `answer 120 192.168.7.5,120 ${hexadecimal}`
  t.same(house.lines(), ['listening', ...Array(3).fill('probe'), announcement, announcement])
  t.same(beside.lines(), house.lines(), 'another program of the machine gets the same')
  t.equal(await ask(client, 'pi-1.local', 20_000, `${ofClient}%eth0`), `${hexadecimal} ${ofNode}%eth0`)
  t.equal(
    await ask(client, 'pi-1.local', 20_000, 'fd00:7::9'),
    `${hexadecimal} fd00:7::5`,
    'from an address of the link',
  )
  t.match(await ask(node), hexadecimal, 'a program of the node itself')
  t.equal(await ask(client, 'pi-2.local', 1_000), 'silent', 'a name of another')
  t.equal((await client.run(process.execPath, '-e', asker('pi-1.local', 20_000))).trim(), '192.168.7.5', 'by IPv4')

  // It sends no IPv4 packets: the name is found to be taken by IPv6 messages alone.
  await other.run(
    'nft',
    'add table ip none; add chain ip none out { type filter hook output priority 0; policy drop; }',
  )
  const second = started(t, other, publisher('pi-1', '192.168.7.6'))
  await eventually('the other machine with the name gives up', async () => second.lines().length > 0)
  t.match(second.lines()[0], /^Another machine has a name of this node on the link/)
  await second.stop()

  await client.run('ip', '-6', 'address', 'add', 'fd00:8::9/64', 'dev', 'eth0', 'nodad')
  await node.run('ip', '-6', 'route', 'add', 'fd00:8::/64', 'dev', 'eth0')
  t.equal(await ask(client, 'pi-1.local', 1_000, 'fd00:8::9'), 'silent', 'an address of another network')

  await node.run('ip', '-6', 'address', 'add', 'fd00:7::55/64', 'dev', 'eth0', 'nodad')
  await node.run('ip', '-6', 'address', 'delete', 'fd00:7::5/64', 'dev', 'eth0')
  const moved = `${hexadecimal.slice(0, -2)}55`
  await eventually('another address is announced', async () =>
    house.lines().includes(`answer 120 192.168.7.5,120 ${moved}`),
  )
  t.ok(house.lines().includes(`answer 0 ${hexadecimal}`), 'the one of before is withdrawn')

  await first.stop()
  await eventually('the name is withdrawn', async () => house.lines().includes(`answer 0 192.168.7.5,0 ${moved}`))
})

test('a machine with IPv6 off publishes its name by IPv4', { skip: whyNoRules() }, async (t) => {
  const wire = await ownSpace(t)
  await wire.run('ip', 'link', 'add', 'wire', 'up', 'type', 'bridge')
  const node = await plugged(t, wire, 5)
  await node.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1')
  const names = started(t, node, publisher('pi-1', '192.168.7.5'))
  const ask = async () => (await node.run(process.execPath, '-e', asker('pi-1.local', 1_000))).trim()
  await eventually('it answers', async () => (await ask()) === '192.168.7.5')
  t.same(names.lines(), [])
})
