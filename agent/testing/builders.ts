/** Builders of the engine's answers, for tests: each test passes only the fields that matter to it. */
import type { MachineDevice } from '../pods/containers/devices.ts'
import type { ContainerIdentity, RuntimeContainer, RuntimeInfo } from '../runtime/runtime.ts'

/** A device of its own; with `number`, another path of the device with this number. */
export function aDevice(path: string, { number = path, shared = 1 } = {}): MachineDevice {
  return { files: [{ number, source: path, target: path }], shared }
}

/** A container that runs for the pod default/web; with the name '' a sandbox. */
export function aContainer({
  identity = {},
  ...over
}: Partial<Omit<RuntimeContainer, 'identity'>> & {
  readonly identity?: Partial<ContainerIdentity>
} = {}): RuntimeContainer {
  const { containerName = 'main' } = identity
  const kind = containerName === '' ? 'sandbox' : 'container'
  const who = { podNamespace: 'default', podName: 'web', podUID: 'uid-of-web', containerName, attempt: 0 }
  return {
    id: containerName || 'sandbox',
    identity: { kind, ...who, specHash: '', gracePeriodSeconds: 30, ...identity },
    sandboxID: kind === 'sandbox' ? undefined : 'sandbox',
    image: 'app:1',
    imageID: '',
    state: 'running',
    exitCode: 0,
    oomKilled: false,
    error: '',
    createdAt: '2026-01-01T00:00:00Z',
    startedAt: '2026-01-01T00:00:01Z',
    finishedAt: undefined,
    ip: undefined,
    ...over,
  }
}

/** An engine whose kernel enforces every limit. */
export const engineInfo: RuntimeInfo = {
  version: 'docker://20.10.24',
  rootDirectory: '/var/lib/docker',
  cgroupVersion: '2',
  memoryLimit: true,
  swapLimit: true,
  pidsLimit: true,
  cpuCfsQuota: true,
  storageDriver: 'overlay2',
  handlers: [],
}
