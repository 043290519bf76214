/** A real D-Bus daemon of a test's own, with a double of systemd's manager on it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import dbus from 'dbus-next'

export const noDBus: string | false = existsSync('/usr/bin/dbus-daemon') ? false : 'dbus-daemon is not installed'

export interface SystemdDouble {
  /** A root whose `run/` is that of a machine systemd has booted. */
  readonly root: string
  readonly socketPath: string
  readonly restarted: string[]
  /** As systemd would say of docker.service. */
  unit: { load: string; active: string }
  /** Calls are taken and not answered. */
  silent: boolean
  remove(): Promise<void>
}

const unitPath = '/org/freedesktop/systemd1/unit/docker_2eservice'
const managerName = 'org.freedesktop.systemd1.Manager'

export async function systemdDouble(): Promise<SystemdDouble> {
  const root = await mkdtemp(join(tmpdir(), 'bramble-bus-'))
  const socketPath = join(root, 'run/dbus/system_bus_socket')
  await mkdir(join(root, 'run/dbus'), { recursive: true })
  await mkdir(join(root, 'run/systemd/system'), { recursive: true })
  const policy =
    '<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/><allow user="*"/></policy>'
  const configuration = `<busconfig><type>custom</type><listen>unix:path=${socketPath}</listen>${policy}</busconfig>`
  await writeFile(join(root, 'bus.conf'), configuration)
  const daemon: ChildProcess = spawn(
    '/usr/bin/dbus-daemon',
    [`--config-file=${join(root, 'bus.conf')}`, '--nofork', '--nopidfile', '--print-address=1'],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  )
  if (daemon.stdout !== null) await once(daemon.stdout, 'data')
  const bus = dbus.sessionBus({ busAddress: `unix:socket=${socketPath}` })
  bus.on('error', () => undefined)
  await new Promise<void>((resolve) => bus.once('connect', () => resolve()))
  await bus.requestName('org.freedesktop.systemd1', 0)

  const double: SystemdDouble = {
    root,
    socketPath,
    restarted: [],
    unit: { load: 'loaded', active: 'active' },
    silent: false,
    async remove() {
      bus.disconnect()
      if (daemon.exitCode === null && daemon.signalCode === null) {
        const ended = once(daemon, 'exit')
        daemon.kill('SIGKILL')
        await ended
      }
      await rm(root, { recursive: true, force: true })
    },
  }
  // Answered by hand: the library's own way to serve wants decorators.
  const answer = (message: dbus.Message): { signature: string; body: unknown[] } | string => {
    const [first, second] = message.body as string[]
    if (message.interface === managerName && message.member === 'LoadUnit') return { signature: 'o', body: [unitPath] }
    if (message.interface === managerName && message.member === 'RestartUnit') {
      if (first !== 'docker.service') return 'org.freedesktop.systemd1.NoSuchUnit'
      double.restarted.push(`${first} ${second}`)
      return { signature: 'o', body: ['/org/freedesktop/systemd1/job/1'] }
    }
    if (message.path === unitPath && message.member === 'Get') {
      const value = second === 'LoadState' ? double.unit.load : double.unit.active
      return { signature: 'v', body: [new dbus.Variant('s', value)] }
    }
    return 'org.freedesktop.DBus.Error.UnknownMethod'
  }
  const methods = bus as unknown as { addMethodHandler(handle: (message: dbus.Message) => boolean): void }
  const send = bus as unknown as { send(message: dbus.Message): void }
  methods.addMethodHandler((message) => {
    if (double.silent) return true
    const given = answer(message)
    send.send(
      typeof given === 'string'
        ? (dbus.Message.newError as unknown as NewError)(message, given, 'No')
        : dbus.Message.newMethodReturn(message, given.signature, given.body),
    )
    return true
  })
  return double
}

/** The package's types have its first argument wrong. */
type NewError = (message: dbus.Message, name: string, text: string) => dbus.Message
