import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join as path } from 'node:path'
import { type Test, test } from 'tap'
import type { BootstrapToken } from '../../api/node/bootstrap-token.ts'
import { parseCidr } from '../../api/text/cidr.ts'
import { openAuthority } from '../../certs/authority.ts'
import { systemClock } from '../../daemon/clock.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { machineObstacle } from '../network/gate/network-obstacle.ts'
import type { FleetRanges, MachineRoute } from '../network/peers/home-networks.ts'
import { type FleetDoor, type FleetDoorHabits, openFleetDoor } from '../testing/fleet-door.ts'
import { readIdentity } from './identity.ts'
import { type JoinCommandNeeds, joinCommand } from './join-command.ts'

const tokenText = 'abcdef.0123456789abcdef'
const token: BootstrapToken = { id: 'abcdef', secret: '0123456789abcdef', usages: ['authentication'], groups: [] }

async function aDoor(t: Test, habits: Partial<FleetDoorHabits> = {}): Promise<FleetDoor> {
  const door = await openFleetDoor({ folder: path(testFolder(t), 'authority'), token, ...habits })
  t.teardown(() => door.close())
  return door
}

/** A machine at which someone types `bramble-agent join …`. */
function aMachine(t: Test, more: Partial<JoinCommandNeeds> = {}) {
  const dataDir = path(t.testdirName, 'machine', 'agent')
  const type = async (...argv: readonly string[]) => {
    let [stdout, stderr] = ['', '']
    const result = await joinCommand(argv, {
      hostname: 'Pi-1',
      readHardware: async () => ({ boardSerial: '10000000aaaaaaaa' }),
      obstacleOn: () => async () => undefined,
      runningAgent: async () => undefined,
      isStartedBySystemd: () => false,
      diskShortages: async () => [],
      clock: systemClock,
      signal: new AbortController().signal,
      stdout: (text) => {
        stdout += text
      },
      stderr: (text) => {
        stderr += text
      },
      defaults: { dataDir, root: '/', dockerSocket: '/run/docker.sock' },
      ...more,
    })
    return { ...result, stdout, stderr }
  }
  return {
    dataDir,
    type,
    join: (door: FleetDoor, ...more: readonly string[]) =>
      type(door.url.origin, '--token', tokenText, '--ca-hash', door.caHash, ...more),
  }
}

test('where systemd starts the agent, the command ends when the machine has joined', async (t) => {
  const door = await aDoor(t)
  const machine = aMachine(t, { isStartedBySystemd: () => true })
  const { runArgs, stdout, exitCode } = await machine.join(door)
  t.equal(exitCode, 0)
  t.equal(runArgs, undefined)
  t.match(stdout, /systemctl status bramble-agent/)

  const own = await machine.join(door, '--log-level', 'debug')
  t.same(own.runArgs, ['--log-level=debug'], 'with options of its own it runs in the foreground')
})

test('joining warns of disks for which the agent evicts pods when it starts', async (t) => {
  const door = await aDoor(t)
  const places: unknown[] = []
  const machine = aMachine(t, {
    diskShortages: async (typed) => {
      places.push(typed)
      return ['The disk of /var/lib/docker has 12 % free']
    },
  })
  const typed = ['--docker-socket', '/run/other.sock', '--config', '/etc/agent.yaml']
  const { exitCode, stdout } = await machine.join(door, ...typed)
  t.equal(exitCode, 0)
  t.match(stdout, /Joined as node pi-1.*\nWarning: The disk of \/var\/lib\/docker has 12 % free\nMake room/)
  t.same(places, [{ dataDir: machine.dataDir, config: '/etc/agent.yaml', dockerSocket: '/run/other.sock', root: '/' }])

  const unread = aMachine(t, { diskShortages: () => Promise.reject(new Error('EIO')) })
  t.match(await unread.join(door), { exitCode: 0 }, 'a disk that cannot be read keeps no machine from joining')
})

const nothingIn = (t: Test, dataDir: string) => t.equal(existsSync(dataDir), false, 'nothing was written')

test('a machine joins with one command, which prints each step', async (t) => {
  const door = await aDoor(t, { looksBeforeApproval: 1 })
  const machine = aMachine(t)
  const { exitCode, stdout, stderr, runArgs } = await machine.join(door, '--log-level', 'debug', '--check')
  t.equal(exitCode, 0, stderr)
  t.same(runArgs, ['--log-level=debug', '--check'], 'it is then to run, with the options of run')
  t.match(
    stdout,
    /authority of 127.0.0.1:\d+ is the expected one\nRequested a certificate .*\n.* as node pi-1\nJoined as node pi-1/,
  )

  const identity = await readIdentity(machine.dataDir)
  t.match(identity, { nodeName: 'pi-1', apiUrl: door.url.origin, mqttUrl: 'mqtts://127.0.0.1:8883' })
  t.equal(identity?.ca, door.authority.certificate)
  t.equal((await stat(path(machine.dataDir, 'identity.json'))).mode & 0o777, 0o600)
  t.same(await readdir(machine.dataDir), ['identity.json', 'identity.json.copy'])

  const [request] = door.requests
  t.match(request?.metadata.annotations, { 'bramble.dev/hardware-identity': '{"boardSerial":"10000000aaaaaaaa"}' })
  t.match(door.visits.at(-1), /cluster-info as system:node:pi-1/, 'the certificate was tried before it was kept')
})

test('joining again gives a fresh certificate in place of the old', async (t) => {
  const door = await aDoor(t)
  const machine = aMachine(t)
  t.same((await machine.join(door, '--no-run')).runArgs, undefined)
  const first = await readIdentity(machine.dataDir)
  const again = await machine.join(door, '--no-run', '--node-name', 'Other')
  t.equal(again.exitCode, 0, again.stderr)
  const second = await readIdentity(machine.dataDir)
  t.equal(second?.nodeName, 'other')
  t.not(second?.key, first?.key)
  t.match(again.stdout, /was node pi-1 before.*docker ps/, 'and it prints what the former name leaves behind')
})

test('joining again beside the agent that runs here renews its certificate and starts no second one', async (t) => {
  const door = await aDoor(t)
  await aMachine(t).join(door, '--no-run')
  const machine = aMachine(t, { runningAgent: async () => 4711 })
  const first = await readIdentity(machine.dataDir)
  const again = await machine.join(door)
  t.same([again.exitCode, again.runArgs], [0, undefined], again.stderr)
  t.match(again.stdout, /process 4711.*once it is restarted/)
  const second = await readIdentity(machine.dataDir)
  t.not(second?.key, first?.key)

  const visits = door.visits.length
  const renamed = await machine.join(door, '--node-name', 'other')
  t.equal(renamed.exitCode, 1)
  t.match(renamed.stderr, /running on .* as node pi-1: process 4711\.\nStop it first/)
  t.equal(door.visits.length, visits, 'nothing was asked')
  t.same(await readIdentity(machine.dataDir), second)
})

test('a controller of another authority receives nothing, not even the token', async (t) => {
  const door = await aDoor(t)
  const machine = aMachine(t)
  const expected = `sha256:${'0'.repeat(64)}`
  const { exitCode, stderr } = await machine.type(door.url.origin, '--token', tokenText, '--ca-hash', expected)
  t.equal(exitCode, 1)
  t.ok(stderr.includes(`expected ${expected}, found ${door.caHash}`), stderr)
  t.match(stderr, /token create --print-join-command/)
  t.same(door.visits, [])
  nothingIn(t, machine.dataDir)
})

test('a server that hides its authority is not trusted', async (t) => {
  const door = await aDoor(t, { showAuthority: false })
  const { stderr } = await aMachine(t).join(door)
  t.match(stderr, /found sha256:[0-9a-f]{64} \(the server's own: it showed no authority\)/)
  t.same(door.visits, [])
})

test("a bad token is refused with the controller's message and whose clock is wrong", async (t) => {
  const nowMs = Date.now()
  const machine = aMachine(t, { clock: { ...systemClock, wallMs: () => nowMs } })
  await t.test('unknown', async (t) => {
    const door = await aDoor(t, { token: { ...token, id: 'zzzzzz' }, nowMs })
    const { exitCode, stderr } = await machine.join(door)
    t.equal(exitCode, 1)
    t.match(stderr, /refused the token abcdef: .*not known here.*this machine's clock agrees with the controller's/)
    nothingIn(t, machine.dataDir)
  })
  await t.test('expired', async (t) => {
    const expiration = new Date(nowMs + 3600_000).toISOString().replace(/\.\d+/, '')
    const door = await aDoor(t, { token: { ...token, expiration }, nowMs: nowMs + 2 * 3600_000 })
    const { stderr, stdout } = await machine.join(door)
    t.ok(stderr.includes(`expired at ${expiration}; the time here is`), stderr)
    t.match(stderr, /this machine's clock is (7199|7200) s behind the controller's/)
    t.match(stdout, /Warning: this machine's clock is/)
    nothingIn(t, machine.dataDir)
  })
})

test('a clock that is years ahead is named before OpenSSL stumbles over it; one in 1970 is allowed', async (t) => {
  const door = await aDoor(t)
  const late = aMachine(t, { clock: { ...systemClock, wallMs: () => Date.UTC(2080, 0) } })
  t.match((await late.join(door)).stderr, /expired: it ended at .*clock shows 2080-01-01T00:00:00Z/)
  t.same(door.visits, [])
  const early = aMachine(t, { clock: { ...systemClock, wallMs: () => 60_000 } })
  t.match(await early.join(door), { exitCode: 0, stdout: /Warning: this machine's clock is \d+ s behind/ })
})

test("a name in use is refused with the controller's message, and nothing is kept", async (t) => {
  const deny = 'node name pi-1 is in use by another machine that is live'
  const machine = aMachine(t)
  const { exitCode, stderr } = await machine.join(await aDoor(t, { deny }))
  t.equal(exitCode, 1)
  t.ok(stderr.includes(`the name pi-1 (NodeNameInUse): ${deny}`), stderr)
  t.match(stderr, /--node-name.*kubectl delete node/s)
  nothingIn(t, machine.dataDir)
})

test('a join that waits for an operator prints that, and goes on with its request when it was interrupted', async (t) => {
  const stop = new AbortController()
  let isApproved = false
  const waits = { because: 'node pi-1 exists', isApproved: () => isApproved }
  const door = await aDoor(t, { waits })
  const folder = testFolder(t)
  const clock = { ...systemClock, sleep: (_ms: number, signal?: AbortSignal) => systemClock.sleep(5, signal) }
  const interrupted = aMachine(t, {
    signal: stop.signal,
    clock,
    stdout: (text) => void (text.includes('interrupted') && stop.abort()),
    defaults: { dataDir: path(folder, 'agent'), root: '/', dockerSocket: '/run/docker.sock' },
  })
  const first = await interrupted.join(door, '--no-run')
  t.equal(first.exitCode, 1)
  t.match(first.stderr, /stopped while the request node-csr-\w+ waits for an operator\.\nRun the same command again/)
  t.same(await readdir(path(folder, 'agent')), ['join-key.json'])
  t.equal((await stat(path(folder, 'agent', 'join-key.json'))).mode & 0o777, 0o600)

  isApproved = true
  const again = aMachine(t, {
    clock,
    defaults: { dataDir: path(folder, 'agent'), root: '/', dockerSocket: '/run/docker.sock' },
  })
  const second = await again.join(door, '--no-run')
  t.equal(second.exitCode, 0, second.stderr)
  t.equal(door.requests.length, 1, 'one request, one key')
  t.same(await readdir(path(folder, 'agent')), ['identity.json', 'identity.json.copy'])
})

test('a join that is stopped while the busy controller makes it wait reports its request all the same', async (t) => {
  const stop = new AbortController()
  let looks = 0
  const door = await aDoor(t, {
    waits: { because: 'node pi-1 exists', isApproved: () => false },
    answer({ method }, response) {
      if (method !== 'GET' || ++looks < 5) return false
      response.writeHead(429, { 'retry-after': '30' }).end('{}')
      setImmediate(() => stop.abort())
      return true
    },
  })
  const clock = { ...systemClock, sleep: (_ms: number, signal?: AbortSignal) => systemClock.sleep(5, signal) }
  const { exitCode, stderr } = await aMachine(t, { signal: stop.signal, clock }).join(door, '--no-run')
  t.equal(exitCode, 1)
  t.match(stderr, /stopped while the request node-csr-\w+ waits for an operator/)
})

test('what waits, why and which command approves it is printed', async (t) => {
  let looks = 0
  const waits = { because: 'node pi-1 exists already', isApproved: () => looks++ > 3 }
  const clock = { ...systemClock, sleep: (_ms: number, signal?: AbortSignal) => systemClock.sleep(5, signal) }
  const { exitCode, stdout, stderr } = await aMachine(t, { clock }).join(await aDoor(t, { waits }), '--no-run')
  t.equal(exitCode, 0, stderr)
  t.match(
    stdout,
    /The request (node-csr-\w+) waits for an operator: node pi-1 exists already\.\n.*kubectl certificate approve \1\n/,
  )
})

test('joining again as the same node shows the certificate it has', async (t) => {
  const door = await aDoor(t)
  const machine = aMachine(t)
  await machine.join(door, '--no-run')
  t.match(door.visits[0], /POST .* as somebody/)
  const visits = door.visits.length
  await machine.join(door, '--no-run')
  t.match(door.visits[visits], /POST .* as system:node:pi-1/)
})

test('a certificate that is not ours is not kept', async (t) => {
  const stranger = await openAuthority(path(testFolder(t), 'stranger'), Date.now())
  const machine = aMachine(t)
  const { stderr } = await machine.join(await aDoor(t, { signWith: stranger }))
  t.match(stderr, /issued an unusable certificate: it is not signed by the authority/)
  nothingIn(t, machine.dataDir)
})

test('what cannot be reached is named, with what to check', async (t) => {
  const machine = aMachine(t)
  const to = (address: string) => machine.type(address, '--token', tokenText, '--ca-hash', `sha256:${'0'.repeat(64)}`)
  const greet = (socket: Socket) => {
    socket.on('error', () => undefined)
    socket.resume().end('220 hello\r\n')
  }
  const plain = createServer(greet).listen(0, '127.0.0.1')
  t.teardown(() => plain.close())
  await once(plain, 'listening')
  const address = plain.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  t.match(
    (await to(`https://127.0.0.1:${port}`)).stderr,
    `What answers at 127.0.0.1:${port} is not the controller's API`,
  )
  t.match((await to('https://127.0.0.1:1')).stderr, 'nothing listens at 127.0.0.1:1')
  // Too long for a label (RFC 1035, section 2.3.4): no name server is asked, which might not answer.
  const name = `${'x'.repeat(64)}.invalid`
  t.match((await to(`https://${name}:6443`)).stderr, `no address is known for the name ${name}`)
  nothingIn(t, machine.dataDir)
})

test('a server that is not the API of a fleet is recognised', async (t) => {
  const machine = aMachine(t)
  const web = await aDoor(t, {
    answer: (_request, response) => {
      response.end('<html>')
      return true
    },
  })
  t.match((await machine.join(web)).stderr, /is not the API of a fleet/)
  await t.test('one that has another name', async (t) => {
    const door = await aDoor(t, { serverNames: ['elsewhere'] })
    t.match((await machine.join(door)).stderr, /certificate does not name 127.0.0.1\.\n.*--host 127.0.0.1/)
  })
  await t.test('one that is not ready', async (t) => {
    const door = await aDoor(t, {
      answer: (_request, response) => {
        response.statusCode = 503
        response.end('{"kind":"Status","message":"the store is busy"}')
        return true
      },
    })
    t.match((await machine.join(door)).stderr, /"the store is busy" \(status 503\)/)
  })
  nothingIn(t, machine.dataDir)
})

test('someone who stops a join that waits leaves nothing behind', async (t) => {
  const stop = new AbortController()
  const waiting = aMachine(t, { signal: stop.signal })
  const door = await aDoor(t, {
    looksBeforeApproval: Number.POSITIVE_INFINITY,
    answer: ({ method }) => {
      if (method === 'GET') stop.abort()
      return false
    },
  })
  const { exitCode, stderr } = await waiting.join(door)
  t.equal(exitCode, 1)
  t.match(stderr, /Stopped before this machine had joined/)
  nothingIn(t, waiting.dataDir)
})

test('wrong arguments are rejected before anything is done', async (t) => {
  const machine = aMachine(t)
  const good = ['https://c:6443', '--token', tokenText, '--ca-hash', `sha256:${'a'.repeat(64)}`]
  for (const [argv, expected] of [
    [[], /^Missing argument: use https:.*HOST:PORT/],
    [['http://c:6443', ...good.slice(1)], /of the form https:\/\/HOST:PORT, not http:/],
    [['c:6443', ...good.slice(1)], /of the form/],
    [[...good, '--token', 'nonsense'], /--token must be a token/],
    [good.slice(0, 3), /--ca-hash must be/],
    [[...good, '--node-name', 'no_good!'], /The node name "no_good!" must be/],
    [[...good, '--colour'], /--colour/],
  ] as const) {
    const { exitCode, stderr } = await machine.type(...argv)
    t.equal(exitCode, 64)
    t.match(stderr, expected)
  }
  const { exitCode, stdout } = await machine.type('--help')
  t.equal(exitCode, 0)
  t.match(stdout, /Usage: bramble-agent join/)
})

/** As on a machine with these routes. */
const on = (routes: readonly MachineRoute[]) => () => async (ranges: FleetRanges) => machineObstacle({ ranges, routes })

test('a machine whose network has addresses of the fleet joins, and names the network with a remedy', async (t) => {
  const home = parseCidr('10.96.3.0/24')
  const obstacleOn = on(home === undefined ? [] : [{ interface: 'eth0', range: home }])
  const info = { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' }
  const { exitCode, stdout } = await aMachine(t, { obstacleOn }).join(await aDoor(t, { info }), '--no-run')
  t.equal(exitCode, 0)
  t.match(
    stdout,
    /^Warning: The network 10.96.3.0\/24 on eth0 of this machine has addresses of serviceCIDR 10.96.0.0\/12\. Pods of this node run in Docker's own network: .*\. Give the fleet/m,
  )
  t.match(stdout, /^Joined as node pi-1/m)
})

test('the same of an IPv6 prefix, in a fleet with both families', async (t) => {
  const obstacleOn = on([{ interface: 'eth0', range: 'fd00:10:96::/64' }])
  const info = { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' }
  const ofIPv6 = { ipv6ClusterCIDR: 'fd00:10:244::/56', ipv6ServiceCIDR: 'fd00:10:96::/112' }
  const joined = await aMachine(t, { obstacleOn }).join(await aDoor(t, { info: { ...info, ...ofIPv6 } }), '--no-run')
  t.match(joined.stdout, /^Warning: The network fd00:10:96::\/64 on eth0 .* serviceCIDR fd00:10:96::\/112\. .*/m)
  const ofIPv4 = await aMachine(t, { obstacleOn }).join(await aDoor(t, { info }), '--no-run')
  t.notMatch(ofIPv4.stdout, /Warning/)
})

test('a machine that cannot be looked at, and a fleet without a network of its own, keep no machine from joining', async (t) => {
  const obstacleOn = () => async () => Promise.reject(new Error('no /proc'))
  const info = { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' }
  for (const habits of [{ info }, {}, { info: { ...info, serviceCIDR: 'x' } }]) {
    const { exitCode, stdout } = await aMachine(t, { obstacleOn }).join(await aDoor(t, habits), '--no-run')
    t.equal(exitCode, 0)
    t.notMatch(stdout, /Warning/)
  }
})
