/** A double of logind on a bus of its own. Its locks are real open files, held until every holder closes them. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { connect, createServer, Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import dbus from 'dbus-next'
import { type Answer, type BusService, type PrivateBus, privateBus, serve } from './private-bus.ts'

export type HeldLock = { readonly who: string; readonly mode: string; readonly pid: number }

export interface LogindDouble {
  readonly root: string
  readonly bus: PrivateBus
  /** Locks held now. */
  readonly locks: readonly HeldLock[]
  /** Value of `ScheduledShutdown`. */
  scheduled: readonly [action: string, wallMs: number]
  /** The next lock is passed as a file that cannot be reopened, as for a user who is not root. */
  passesSocket: boolean
  /** As many times as it was made to read its files. */
  readonly reloads: number
  /** Requests to reboot, with their argument: `Reboot false`. */
  readonly reboots: readonly string[]
  /** Another program blocks shutdowns. */
  isBlocked: boolean
  /** From the request to read them until it does. */
  reloadMs: number
  /** Announces it; from systemd 255 on with the action that follows. */
  prepare(isPreparing: boolean, action?: string): void
  /** Ends, and another one that has the same locks takes its name: also after the bus was restarted. */
  restart(): Promise<void>
  remove(): Promise<void>
}

const path = '/org/freedesktop/login1'
const managerName = 'org.freedesktop.login1.Manager'
const defaultSeconds = 5
const blockLock = ['sleep:shutdown', 'apt', 'An upgrade is under way', 'block', 0, 1] as const

export async function logindDouble(): Promise<LogindDouble> {
  const bus = await privateBus()
  const { root } = bus
  await mkdir(join(root, 'usr/lib/systemd/system'), { recursive: true })
  await writeFile(join(root, 'usr/lib/systemd/system/systemd-logind.service'), '')
  const held = new Set<readonly [what: string, who: string, why: string, mode: string, uid: number, pid: number]>()
  let service: BusService
  let isPreparing = false
  let delaySeconds = defaultSeconds
  let made = 0
  let reloads = 0
  const reboots: string[] = []

  const inhibit = async ({ sender, body }: dbus.Message): Promise<Answer> => {
    const [what, who, why, mode] = body as [string, string, string, string]
    const pid = Number((await service.call(ask('GetConnectionUnixProcessID', 's', [sender])))[0])
    const pass = double.passesSocket ? socketPair : fifo
    double.passesSocket = false
    const { here, there } = await pass(join(root, `run/lock-${made++}`))
    const lock = [what, who, why, mode, 0, pid] as const
    held.add(lock)
    here.on('close', () => held.delete(lock))
    here.on('error', () => undefined)
    here.resume()
    // Once it is passed this copy is one too many.
    setImmediate(() => setImmediate(there.close))
    return { signature: 'h', body: [there.fd] }
  }

  const reload = async () => {
    reloads++
    await pause(double.reloadMs)
    delaySeconds = (await configured(root)) ?? defaultSeconds
  }

  const properties = (): { readonly [name: string]: dbus.Variant } => ({
    InhibitDelayMaxUSec: new dbus.Variant('t', BigInt(delaySeconds * 1e6)),
    PreparingForShutdown: new dbus.Variant('b', isPreparing),
    ScheduledShutdown: new dbus.Variant('(st)', [double.scheduled[0], BigInt(double.scheduled[1] * 1000)]),
  })

  const answer = async (message: dbus.Message): Promise<Answer> => {
    const [first, second] = message.body as string[]
    if (message.member === 'Inhibit') return await inhibit(message)
    if (message.member === 'ListInhibitors') {
      return { signature: 'a(ssssuu)', body: [[...held, ...(double.isBlocked ? [blockLock] : [])]] }
    }
    if (message.member === 'Get' && first === managerName && second !== undefined) {
      return { signature: 'v', body: [properties()[second]] }
    }
    if (message.member === 'KillUnit' && message.body.join() === 'systemd-logind.service,main,1') {
      // After its answer, as a signal is.
      void reload()
      return { signature: '', body: [] }
    }
    if (message.member === 'Reboot') {
      reboots.push(`Reboot ${message.body.join()}`)
      return { signature: '', body: [] }
    }
    return 'org.freedesktop.DBus.Error.UnknownMethod'
  }
  const appear = async () => {
    service = await serve(bus, ['org.freedesktop.login1', 'org.freedesktop.systemd1'], answer)
  }

  const double: LogindDouble = {
    root,
    bus,
    scheduled: ['', 0],
    passesSocket: false,
    reboots,
    isBlocked: false,
    reloadMs: 0,
    get locks() {
      return [...held].map(([, who, , mode, , pid]) => ({ who, mode, pid }))
    },
    get reloads() {
      return reloads
    },
    prepare(next, action) {
      isPreparing = next
      if (action !== undefined) {
        const metadata = { type: new dbus.Variant('s', action) }
        service.signal(path, managerName, 'PrepareForShutdownWithMetadata', 'ba{sv}', [next, metadata])
      }
      service.signal(path, managerName, 'PrepareForShutdown', 'b', [next])
    },
    async restart() {
      service.leave()
      isPreparing = false
      await appear()
    },
    async remove() {
      service.leave()
      await bus.remove()
    },
  }
  await appear()
  return double
}

function ask(member: string, signature: string, body: unknown[]): dbus.Message {
  const name = 'org.freedesktop.DBus'
  return new dbus.Message({
    destination: name,
    path: '/org/freedesktop/DBus',
    interface: name,
    member,
    signature,
    body,
  })
}

type Passed = { readonly here: Socket; readonly there: { readonly fd: number; readonly close: () => void } }

async function fifo(at: string): Promise<Passed> {
  await promisify(execFile)('mkfifo', ['--mode=600', at])
  const reader = openSync(at, constants.O_RDONLY | constants.O_NONBLOCK)
  const fd = openSync(at, 'w')
  return {
    here: new Socket({ fd: reader, readable: true, writable: false }),
    there: { fd, close: () => closeSync(fd) },
  }
}

async function socketPair(at: string): Promise<Passed> {
  const server = createServer().listen(at)
  const there = connect(at)
  const [here] = (await once(server, 'connection')) as [Socket]
  server.close()
  const { fd } = (there as unknown as { readonly _handle: { readonly fd: number } })._handle
  return { here, there: { fd, close: () => void there.destroy() } }
}

/** As logind reads them: the last name wins. */
async function configured(root: string): Promise<number | undefined> {
  const files = new Map<string, string>()
  for (const folder of ['usr/lib/systemd/logind.conf.d', 'etc/systemd/logind.conf.d']) {
    for (const name of await readdir(join(root, folder)).catch(() => [])) files.set(name, join(root, folder, name))
  }
  const texts = await Promise.all([...files.keys()].sort().map((name) => readFile(files.get(name) ?? '', 'utf8')))
  const seconds = texts.flatMap((text) => /^InhibitDelayMaxSec=(\d+)$/m.exec(text)?.[1] ?? []).at(-1)
  return seconds === undefined ? undefined : Number(seconds)
}
