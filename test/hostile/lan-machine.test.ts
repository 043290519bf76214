/** A machine on the link of the nodes, without a certificate and without a token: it can send any packet. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { prover } from '../../agent/network/probes/node-proof.ts'
import {
  datagramBytes,
  nonceBytes,
  type Proof,
  readProof,
  writeChallenge,
  writeProof,
} from '../../agent/network/probes/probe-message.ts'
import { probePort } from '../../api/network/address-probe.ts'
import { nodeDnsAddress } from '../../api/network/cluster-dns.ts'
import { openAuthority } from '../../certs/authority.ts'
import { issueNode } from '../../certs/issue.ts'
import { whyNoRoutedMachines } from '../support/routed-machines.ts'
import { eventually } from '../support/wait.ts'
import { type AttackedLink, attackedLink } from './support/attacked-link.ts'
import type { AttackResult } from './support/lan-attacker.ts'
import {
  claimOf,
  costlyMulticast,
  healthRequests,
  honestQuestion,
  malformedNames,
  namesOverTcp,
} from './support/lan-messages.ts'

const mdns = { to: '224.0.0.251', port: 5353 }
/** Duration of the attacks on one part; all of them together take less than a minute. */
const seconds = 4

test('an attacker on the link of the nodes', { skip: whyNoRoutedMachines() }, async (t) => {
  const fleet = await attackedLink(t)
  const { first, second, stranger, node } = fleet

  await t.test('gets no answer of the name server, from whichever source', (t) =>
    fleet.unnoticed(t, async () => {
      await stranger.run('ip', 'route', 'add', nodeDnsAddress, 'via', first.address)
      const arrived = await countedAt(fleet, nodeDnsAddress)
      const sources = [stranger.address, second.address, fleet.podAddress]
      const names = { to: nodeDnsAddress, port: 53, seconds }
      const messages = encoded([...malformedNames, honestQuestion])
      const [datagrams, connections] = await fleet.disguised(sources.slice(1), () =>
        Promise.all([
          fleet.attack({ attack: 'datagrams', ...names, messages, from: sources, perSecond: 10_000 }),
          fleet.attack({ attack: 'connections', ...names, messages: encoded(namesOverTcp), count: 2_000 }),
        ]),
      )
      t.comment(`datagrams: ${shown(datagrams)}; connections: ${shown(connections)}`)
      t.ok((await arrived('udp')) > 1_000, 'the datagrams arrive')
      t.equal(datagrams.answers, 0, 'none is answered')
      t.ok((await arrived('tcp')) > 100, 'and so do the connections')
      t.equal(connections.opened, 0, 'none is accepted')
    }),
  )

  await t.test('takes no answer from others as a pod either, which gets through the rules', (t) =>
    fleet.unnoticed(t, async () => {
      const names = { to: nodeDnsAddress, port: 53, seconds }
      const [datagrams, connections] = await Promise.all([
        fleet.attackAsPod({ attack: 'datagrams', ...names, messages: encoded(malformedNames), perSecond: 10_000 }),
        fleet.attackAsPod({ attack: 'connections', ...names, messages: encoded(namesOverTcp), count: 2_000 }),
      ])
      t.comment(`datagrams: ${shown(datagrams)}; connections: ${shown(connections)}`)
      t.ok(datagrams.answers > 0, 'the datagrams arrive')
      t.ok(connections.opened > 100, 'and so do the connections')
      // Some that are refused are not closed on this side yet.
      t.ok(connections.stillOpen <= 64, `${connections.stillOpen} of them are open, of 16 that one client may have`)
    }),
  )

  await t.test('cannot occupy a node with multicast DNS', (t) =>
    fleet.unnoticed(t, async () => {
      const costly = encoded([costlyMulticast('query'), costlyMulticast('response')])
      const neighbours = Array.from({ length: 100 }, (_, at) => stranger.address.replace(/\d+$/, `${100 + at}`))
      const used = await fleet.cpuSeconds(() =>
        fleet.disguised(neighbours, async () => {
          const from = [stranger.address, ...neighbours]
          const flood = { attack: 'datagrams', ...mdns, multicastBy: stranger.address, from, fromPort: 5353 } as const
          t.comment(shown(await fleet.attack({ ...flood, messages: costly, perSecond: 1_000, seconds })))
          const malformed = encoded(malformedNames)
          t.comment(shown(await fleet.attack({ ...flood, messages: malformed, perSecond: 1_000, seconds })))
        }),
      )
      t.ok(used < 2, `the agent used ${used.toFixed(1)} s of a processor in ${2 * seconds} s`)
    }),
  )

  await t.test(
    'takes the name of a node in the house by claiming it, not that in the fleet, which is logged once',
    (t) =>
      fleet.unnoticed(t, async () => {
        const claim = claimOf(`${first.name}.local`, stranger.address)
        const flood = { attack: 'datagrams', ...mdns, multicastBy: stranger.address, fromPort: 5353 } as const
        await fleet.attack({ ...flood, messages: encoded([claim]), perSecond: 50, seconds })
        const losses = node.lines.filter(({ message }) => /has a name of this node on the link/.test(message))
        t.ok(losses.length <= 2, `it is logged ${losses.length} times`)
      }),
  )

  await t.test('cannot keep a health check of a Service from its answer', (t) =>
    fleet.unnoticed(t, async () => {
      const target = { to: first.address, port: fleet.healthCheckPort, seconds }
      const attack = fleet.attack({
        attack: 'connections',
        ...target,
        messages: encoded(healthRequests),
        count: 2_000,
      })
      const url = `http://${first.address}:${fleet.healthCheckPort}/`
      const answers = await eachSecond(seconds, () => statusOf(fleet, url))
      const connections = await attack
      t.comment(`${shown(connections)}; ${answers}`)
      t.ok(connections.opened > 100)
      t.ok(
        answers.some((status) => status === 200),
        `health checks: ${answers}`,
      )
    }),
  )

  await t.test('reaches no port of the agent itself', async (t) => {
    const url = node.lines.find(({ message }) => message === 'Local endpoint open')?.['url']
    const ports = [Number(new URL(String(url)).port), 10_250]
    for (const port of ports) {
      const { opened } = await fleet.attack({
        attack: 'connections',
        ...{ to: first.address, port, count: 5, messages: [''], seconds: 1 },
      })
      t.equal(opened, 0, `port ${port}`)
    }
  })

  await t.test('cannot occupy a node with probes', (t) => fleet.unnoticed(t, () => floodProbes(t, fleet)))

  await t.test('does not get the address of a load balancer by claiming it', async (t) => {
    const taken = node.lines.filter(({ message }) => message === 'Load balancer address taken')
    t.equal(taken.length, 1, 'the first node has it')
    await stranger.run('ip', 'address', 'add', `${fleet.balancer}/24`, 'dev', 'host0')
    for (let times = 0; times < 3; times++) await announce(fleet, fleet.balancer)
    t.match(await first.run('ip', 'address', 'show', 'dev', 'lo'), ` ${fleet.balancer}/32 `)
    await stranger.run('ip', 'address', 'delete', `${fleet.balancer}/24`, 'dev', 'host0')
  })

  await t.test('does not prove the address of a node that it has taken', (t) =>
    fleet.unnoticed(t, () => takeAddress(t, fleet)),
  )

  await fleet.memory(t)
})

function encoded(messages: readonly Uint8Array[]): readonly string[] {
  return messages.map((one) => Buffer.from(one).toString('base64'))
}

function shown(result: AttackResult): string {
  return Object.entries(result)
    .flatMap(([name, count]) => (typeof count === 'number' && count > 0 ? [`${name} ${count}`] : []))
    .join(', ')
}

async function eachSecond<T>(times: number, look: () => Promise<T>): Promise<readonly T[]> {
  const seen: T[] = []
  for (let turn = 0; turn < times; turn++) {
    seen.push(await look())
    await pause(1_000)
  }
  return seen
}

const challengeTo = (address: string) => writeChallenge({ nonce: randomBytes(nonceBytes), address })

/** Challenges, proofs of no challenge, and neither, from the attacker and with the source of the other node. */
async function floodProbes(t: Test, fleet: AttackedLink): Promise<void> {
  const { first, second, stranger, node } = fleet
  const nonce = randomBytes(nonceBytes)
  const messages = encoded([
    challengeTo(first.address),
    challengeTo(second.address),
    Buffer.concat([Buffer.from('BRc1'), Buffer.alloc(datagramBytes - 4, 0xff)]),
    Buffer.concat([Buffer.from('BRp1'), nonce, Buffer.of(255, 255)]),
    Buffer.concat([Buffer.from('BRp1'), nonce, Buffer.of(0, 1, 1, 0, 1, 1)]),
    Buffer.alloc(0),
    randomBytes(datagramBytes),
  ])
  const flood = {
    attack: 'datagrams',
    to: first.address,
    port: probePort,
    messages,
    perSecond: 5_000,
    seconds,
  } as const
  const sources = [stranger.address, second.address, fleet.podAddress]
  let result: AttackResult | undefined
  const used = await fleet.cpuSeconds(async () => {
    result = await fleet.disguised(sources.slice(1), () => fleet.attack({ ...flood, from: sources }))
  })
  if (result === undefined) throw new Error('Nothing was sent')
  t.comment(`${shown(result)}; the agent used ${used.toFixed(1)} s of a processor`)
  t.ok(result.answers > 0, 'the datagrams arrive')
  t.ok(result.answers <= 20 + 5 * (seconds + 1), `${result.answers} challenges are answered`)
  t.ok(result.answerBytes <= result.answers * datagramBytes)
  const lost = node.lines.filter(({ message }) => message.startsWith('The address of a node is not proven'))
  t.same(lost, [], 'the other node keeps its address')
}

/** Counts packets that arrive at the first node for this address, before its rules; resolves with the count of a protocol. */
async function countedAt({ first }: AttackedLink, address: string) {
  const chain = 'add table ip seen; add chain ip seen in { type filter hook prerouting priority -400 ; }'
  const rules = ['udp', 'tcp'].map(
    (one) => `add rule ip seen in iifname host0 ip daddr ${address} meta l4proto ${one} counter`,
  )
  await first.run('nft', [chain, ...rules].join('; '))
  return async (protocol: 'udp' | 'tcp') => {
    const listed = await first.run('nft', 'list', 'table', 'ip', 'seen')
    return Number(new RegExp(`l4proto ${protocol} counter packets (\\d+)`).exec(listed)?.[1] ?? 0)
  }
}

/** Status of a health check by the attacker, which is a machine of the local network; 0: no answer. */
async function statusOf({ stranger }: AttackedLink, url: string): Promise<number> {
  const script = `fetch('${url}', { signal: AbortSignal.timeout(2000) }).then(({ status }) => console.log(status), () => console.log(0))`
  const { stdout } = await stranger.tryRun(process.execPath, '-e', script)
  return Number(stdout)
}

/** Without the nonce. */
function partsOf({ signature, certificate }: Proof) {
  const bytes = writeProof({ nonce: Buffer.alloc(nonceBytes), signature, certificate }) ?? Buffer.alloc(0)
  const [before, after] = [bytes.subarray(0, 4), bytes.subarray(4 + nonceBytes)]
  return { before: before.toString('base64'), after: after.toString('base64') }
}

/** The first node gets an ARP request of the attacker from this address. */
async function announce({ first, stranger }: AttackedLink, address: string): Promise<void> {
  await stranger.run('sysctl', '--quiet', '--write', 'net.ipv4.conf.all.arp_announce=0')
  await stranger.run('ip', 'neighbour', 'flush', 'dev', 'host0')
  await stranger.tryRun('ping', '-q', '-c', '1', '-W', '1', '-I', address, first.address)
}

/** The agent of the other node has ended, and its address is that of the attacker now, who has recorded a proof of it before. */
async function takeAddress(t: Test, fleet: AttackedLink): Promise<void> {
  const { first, second, stranger, other, node } = fleet
  t.ok(await fleet.hasRoute(), 'the other node is reached')
  const recorded = await recordedProof(fleet)
  other.kill('SIGKILL')
  await other.ended
  await second.run('ip', 'address', 'delete', `${second.address}/24`, 'dev', 'host0')
  await stranger.run('ip', 'address', 'add', `${second.address}/24`, 'dev', 'host0')
  await eventually('the route is gone', async () => {
    await announce(fleet, second.address)
    return !(await fleet.hasRoute())
  })
  const before = fleet.logLength()
  const attack = fleet.attack({
    attack: 'impostor',
    address: second.address,
    victim: first.address,
    challenge: challengeTo(first.address).toString('base64'),
    // Each second challenge has no answer.
    proofs: (await forgedProofs(fleet, recorded)).flatMap((proof) => [proof, { before: '', after: '' }]),
    seconds: 3 * seconds,
  })
  let ended = false
  void attack.finally(() => {
    ended = true
  })
  while (!ended) {
    t.notOk(await fleet.hasRoute(), 'no route to the attacker')
    await pause(1_000)
  }
  const result = await attack
  t.comment(shown(result))
  t.ok(result.challenges >= 3, `${result.challenges} probes reach the attacker`)
  t.ok(fleet.logLength() - before < 1_000, `${fleet.logLength() - before} characters are logged`)
  t.notOk(node.lines.some(({ message, node }) => message === 'The address of a node is proven' && node === second.name))
}

/** What the other node answers to anyone who asks for its address. */
async function recordedProof({ second, attack }: AttackedLink): Promise<Proof> {
  const { received = '' } = await attack({
    attack: 'datagrams',
    ...{ to: second.address, port: probePort, perSecond: 2, seconds: 1 },
    messages: encoded([challengeTo(second.address)]),
  })
  const proof = readProof(Buffer.from(received, 'base64'))
  if (proof === undefined) throw new Error('The node answers no challenge')
  return proof
}

async function forgedProofs({ folder, second }: AttackedLink, recorded: Proof) {
  const authority = await openAuthority(join(folder, 'forged-authority'), Date.now())
  const { certificate, key } = issueNode(authority, { nodeName: second.name, nowMs: Date.now() })
  const own = prover(() => ({ ca: authority.certificate, certificate, key }))
  const proof = own.prove({ nonce: randomBytes(nonceBytes), address: second.address })
  const damaged = Buffer.from(recorded.signature)
  damaged[20] = (damaged[20] ?? 0) ^ 1
  return [
    recorded,
    proof,
    { ...proof, certificate: recorded.certificate },
    { ...recorded, certificate: proof.certificate },
    { ...recorded, signature: damaged },
    { ...recorded, certificate: recorded.certificate.subarray(0, -1) },
    { ...recorded, signature: Buffer.alloc(0), certificate: Buffer.alloc(0) },
  ].map(partsOf)
}
