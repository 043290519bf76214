/** Limits of a container that the kernel cannot enforce: the container runs without them, with an Event. */
import type { Pod } from '../../../api/pod.ts'
import type { ContainerOptions, KernelLimits } from '../../runtime/runtime.ts'
import type { PodEvent } from '../record/pod-events.ts'

type Limits = ContainerOptions['limits']

/** The limits that the kernel enforces. All of them before the engine has reported its kernel. */
export function enforceable(limits: Limits, kernel: KernelLimits | undefined): Limits {
  if (kernel === undefined) return limits
  return {
    nanoCPUs: kernel.cpuCfsQuota ? limits.nanoCPUs : 0,
    memoryBytes: kernel.memoryLimit ? limits.memoryBytes : 0,
    pids: kernel.pidsLimit ? limits.pids : 0,
  }
}

/** A pod with an AppArmor profile must not run without AppArmor (pkg/security/apparmor/validate.go). */
export function appArmorRefusal({ spec }: Pod, kernel: KernelLimits | undefined) {
  if (kernel?.appArmor !== false) return undefined
  const all = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])]
  const profiles = [spec.securityContext, ...all.map((one) => one.securityContext)].map((one) => one?.appArmorProfile)
  if (!profiles.some((profile) => profile !== undefined && profile.type !== 'Unconfined')) return undefined
  return { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host' }
}

/** How to enable them on a Raspberry Pi: parameters of the kernel command line. */
const remedy =
  'to enforce it, append cgroup_enable=memory cgroup_memory=1 to the line in /boot/firmware/cmdline.txt (or /boot/cmdline.txt) and reboot the node'

/** `limits`: what was asked for. */
export function unenforcedEvents(limits: Limits, kernel: KernelLimits | undefined): readonly PodEvent[] {
  const left = enforceable(limits, kernel)
  const warning = (reason: string, message: string): PodEvent => ({ type: 'Warning', reason, message })
  return [
    ...(left.memoryBytes === limits.memoryBytes
      ? []
      : [
          warning(
            'MemoryLimitNotEnforced',
            `The kernel of this node has no memory cgroup, so no memory limit; ${remedy}`,
          ),
        ]),
    ...(left.nanoCPUs === limits.nanoCPUs
      ? []
      : [
          warning(
            'CPULimitNotEnforced',
            'The kernel of this node cannot limit CPU time: it lacks CONFIG_CFS_BANDWIDTH',
          ),
        ]),
    ...(left.pids === limits.pids
      ? []
      : [warning('PIDLimitNotEnforced', 'The kernel of this node has no pids cgroup, so no limit of processes')]),
  ]
}
