/** A double of systemd's manager on a bus of its own. */
import dbus from 'dbus-next'
import { privateBus, serve } from './private-bus.ts'

export interface SystemdDouble {
  readonly root: string
  readonly restarted: string[]
  /** The state of docker.service, as systemd reports it. */
  unit: { load: string; active: string }
  /** Calls are taken and not answered. */
  silent: boolean
  remove(): Promise<void>
}

const unitPath = '/org/freedesktop/systemd1/unit/docker_2eservice'
const managerName = 'org.freedesktop.systemd1.Manager'

export async function systemdDouble(): Promise<SystemdDouble> {
  const bus = await privateBus()
  const double: SystemdDouble = {
    root: bus.root,
    restarted: [],
    unit: { load: 'loaded', active: 'active' },
    silent: false,
    async remove() {
      systemd.leave()
      await bus.remove()
    },
  }
  const propertyOf = (name: string | undefined) => (name === 'LoadState' ? double.unit.load : double.unit.active)
  const systemd = await serve(bus, ['org.freedesktop.systemd1'], (message) => {
    if (double.silent) return undefined
    const [first, second] = message.body as string[]
    if (message.interface === managerName && message.member === 'LoadUnit') return { signature: 'o', body: [unitPath] }
    if (message.interface === managerName && message.member === 'RestartUnit') {
      if (first !== 'docker.service') return 'org.freedesktop.systemd1.NoSuchUnit'
      double.restarted.push(`${first} ${second}`)
      return { signature: 'o', body: ['/org/freedesktop/systemd1/job/1'] }
    }
    if (message.path === unitPath && message.member === 'Get') {
      return { signature: 'v', body: [new dbus.Variant('s', propertyOf(second))] }
    }
    return 'org.freedesktop.DBus.Error.UnknownMethod'
  })
  return double
}
