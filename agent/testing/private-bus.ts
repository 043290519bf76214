/** A real D-Bus daemon of a test's own, in a root that looks like a machine systemd has booted; and services on it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import dbus from 'dbus-next'
import { skipWithout } from '../../test/support/missing-parts.ts'

export const noDBus: string | false = skipWithout('dbus', existsSync('/usr/bin/dbus-daemon'))

export interface PrivateBus {
  readonly root: string
  readonly socketPath: string
  /** Every connection is cut. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Stopped, and its files are gone. */
  remove(): Promise<void>
}

export async function privateBus(): Promise<PrivateBus> {
  // Not in the test's own folder: a socket's name has room for a hundred letters only.
  const root = await mkdtemp(join(tmpdir(), 'bramble-bus-'))
  const socketPath = join(root, 'run/dbus/system_bus_socket')
  await mkdir(join(root, 'run/dbus'), { recursive: true })
  await mkdir(join(root, 'run/systemd/system'), { recursive: true })
  const policy =
    '<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/><allow user="*"/></policy>'
  const configuration = `<busconfig><type>custom</type><listen>unix:path=${socketPath}</listen>${policy}</busconfig>`
  await writeFile(join(root, 'bus.conf'), configuration)
  let daemon: ChildProcess | undefined
  const stop = async () => {
    if (daemon === undefined) return
    const ended = once(daemon, 'exit')
    daemon.kill('SIGKILL')
    await ended
    daemon = undefined
  }
  const start = async () => {
    await rm(socketPath, { force: true })
    daemon = spawn(
      '/usr/bin/dbus-daemon',
      [`--config-file=${join(root, 'bus.conf')}`, '--nofork', '--nopidfile', '--print-address=1'],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    )
    if (daemon.stdout !== null) await once(daemon.stdout, 'data')
  }
  await start()
  return {
    root,
    socketPath,
    stop,
    start,
    async remove() {
      await stop()
      await rm(root, { recursive: true, force: true })
    },
  }
}

/** A text is the name of an error; undefined: the call is taken and not answered. */
export type Answer = { readonly signature: string; readonly body: unknown[] } | string | undefined

export interface BusService {
  call(message: dbus.Message): Promise<readonly unknown[]>
  signal(path: string, from: string, member: string, signature: string, body: unknown[]): void
  leave(): void
}

/** Owns these names and answers by hand: the library's own way to serve wants decorators. Open files (`h`) may be passed. */
export async function serve(
  { socketPath }: PrivateBus,
  names: readonly string[],
  answer: (message: dbus.Message) => Answer | Promise<Answer>,
): Promise<BusService> {
  const options = { busAddress: `unix:path=${socketPath}`, negotiateUnixFd: true }
  const bus = dbus.sessionBus(options as { busAddress: string }) as ServingBus
  bus.on('error', () => undefined)
  await new Promise<void>((resolve) => bus.once('connect', () => resolve()))
  bus.addMethodHandler((message: dbus.Message) => {
    void Promise.resolve(answer(message)).then((given) => {
      if (given === undefined) return
      const reply =
        typeof given === 'string'
          ? (dbus.Message.newError as unknown as NewError)(message, given, 'No')
          : dbus.Message.newMethodReturn(message, given.signature, given.body)
      bus.send(reply)
    })
    return true
  })
  for (const name of names) await bus.requestName(name, 0)
  return {
    call: async (message) => (await bus.call(message))?.body ?? [],
    signal: (...signal) => bus.send((dbus.Message.newSignal as unknown as NewSignal)(...signal)),
    leave: () => bus.disconnect(),
  }
}

type ServingBus = dbus.MessageBus & {
  addMethodHandler(handle: (message: dbus.Message) => boolean): void
  send(message: dbus.Message): void
}
/** The package's types have these wrong. */
type NewError = (message: dbus.Message, name: string, text: string) => dbus.Message
type NewSignal = (...signal: Parameters<BusService['signal']>) => dbus.Message
