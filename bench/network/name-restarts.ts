/** Measures what programs with glibc get from the name server of a node while it restarts. `--help` prints the usage. */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { baseRules } from '../../agent/network/base-rules.ts'
import { nameRules } from '../../agent/network/names/name-rules.ts'
import { allRules } from '../../agent/network/rule-changes.ts'
import { ipv4Rules } from '../../agent/network/rule-family.ts'
import { nodeDnsAddress } from '../../api/network/cluster-dns.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'

const run = promisify(execFile)
const everyMs = 100
const { away: gapsMs } = benchmarkOptions({
  name: 'node dist/bench/network/name-restarts.js',
  text: `Looks a name up with getent, which uses the resolver of glibc, every ${everyMs} ms in the network namespace of a pod, while the name server of
the node is away and then starts again. Prints how many lookups failed and how long the longest took, with the rules of the address of the name server
and without them. Options of the resolver can be given in RES_OPTIONS (resolv.conf(5)). Needs root and nft.`,
  options: {
    away: {
      value: 'MS',
      help: 'how long the server is away before its process is started',
      range: [0, 600_000],
      repeated: true,
      default: ['500', '1500', '3000'],
    },
  },
})
const network = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [{ name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.7.1', segment: 's' }],
}

/** Answers every question with one address. */
const server = `
const socket = require('dgram').createSocket('udp4')
socket.on('message', (message, { port, address }) => {
  const answer = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 96, 0, 7]
  const bytes = Buffer.concat([message.subarray(0, message.indexOf(0, 12) + 5), Buffer.from(answer)])
  bytes[2] = 0x81
  bytes[3] = 0x80
  bytes[7] = 1
  bytes[11] = 0
  socket.send(bytes, port, address)
})
socket.bind(53, '${nodeDnsAddress}', () => console.log('listening'))
`

const [machine, pod] = [0, 1].map(() => `bench-${randomBytes(4).toString('hex')}`)
if (machine === undefined || pod === undefined) throw new Error('No names')
const folder = await mkdtemp(join(tmpdir(), 'bramble-bench-'))
const inside = (space: string, ...line: readonly string[]) => run('ip', ['netns', 'exec', space, ...line])
try {
  await prepare(machine, pod)
  for (const hasRules of [false, true]) {
    await applyRules(machine, hasRules)
    for (const gapMs of gapsMs) console.log(await measure(machine, pod, gapMs, hasRules))
  }
} finally {
  for (const space of [machine, pod]) await run('ip', ['netns', 'delete', space]).catch(() => undefined)
  await rm(folder, { recursive: true, force: true })
}

async function prepare(machine: string, pod: string): Promise<void> {
  for (const space of [machine, pod]) {
    await run('ip', ['netns', 'add', space])
    await run('ip', ['-n', space, 'link', 'set', 'lo', 'up'])
  }
  await run('ip', ['-n', machine, 'link', 'add', 'pods', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pod])
  for (const [space, device, address] of [
    [machine, 'pods', '10.244.1.1/24'],
    [pod, 'eth0', '10.244.1.9/24'],
  ] as const) {
    await run('ip', ['-n', space, 'address', 'add', address, 'dev', device])
    await run('ip', ['-n', space, 'link', 'set', device, 'up'])
  }
  await run('ip', ['-n', pod, 'route', 'add', 'default', 'via', '10.244.1.1'])
  await run('ip', ['-n', machine, 'address', 'add', `${nodeDnsAddress}/32`, 'dev', 'lo', 'scope', 'host'])
  await writeFile(join(folder, 'resolv.conf'), `nameserver ${nodeDnsAddress}\noptions ndots:5\n`)
  await writeFile(join(folder, 'nsswitch.conf'), 'hosts: dns\n')
}

async function applyRules(machine: string, hasRules: boolean): Promise<void> {
  const file = join(folder, 'rules')
  const part = nameRules(network, 'pi-1')
  const chains = new Map([...part.chains].filter(([name]) => hasRules || name !== 'names-sent'))
  await inside(machine, 'nft', 'flush ruleset')
  await writeFile(file, allRules(undefined, [baseRules(ipv4Rules), { ...part, chains }], ipv4Rules).commands)
  await inside(machine, 'nft', '-f', file)
}

async function started(machine: string): Promise<ChildProcess> {
  const child = spawn('ip', ['netns', 'exec', machine, process.execPath, '-e', server], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (child.stdout !== null) await once(child.stdout, 'data')
  return child
}

async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

async function measure(machine: string, pod: string, gapMs: number, hasRules: boolean): Promise<string> {
  const first = await started(machine)
  const results: Promise<{ readonly ms: number; readonly isFound: boolean }>[] = []
  const lookups = setInterval(() => results.push(lookUp(pod)), everyMs)
  await sleep(1_000)
  const endedMs = performance.now()
  await ended(first)
  await sleep(gapMs)
  const second = await started(machine)
  const away = ((performance.now() - endedMs) / 1_000).toFixed(1)
  await sleep(1_000)
  clearInterval(lookups)
  const all = await Promise.all(results)
  await ended(second)
  const failed = all.filter(({ isFound }) => !isFound).length
  const longest = Math.max(...all.map(({ ms }) => ms)) / 1_000
  return `away ${away} s, ${hasRules ? 'with' : 'without'} rules: ${failed} of ${all.length} lookups failed, the longest took ${longest.toFixed(1)} s`
}

async function lookUp(pod: string): Promise<{ readonly ms: number; readonly isFound: boolean }> {
  const beganMs = performance.now()
  const files = ['resolv.conf', 'nsswitch.conf'].map((name) => `mount --bind ${join(folder, name)} /etc/${name}`)
  const script = `${files.join(' && ')} && getent ahostsv4 web.shop.svc.cluster.local.`
  const isFound = await inside(pod, 'unshare', '--mount', 'sh', '-c', script).then(
    ({ stdout }) => stdout.includes('10.96.0.7'),
    () => false,
  )
  return { ms: performance.now() - beganMs, isFound }
}
