/** What a container is to be held to, and a kernel that cannot: it runs all the same, and its pod is told. */
import type { Pod } from '../../../api/pod.ts'
import type { PodEvent } from '../record/pod-events.ts'
import type { ContainerOptions, KernelLimits } from '../runtime/runtime.ts'

type Limits = ContainerOptions['limits']

/** What is left of them. Before the engine said what its kernel can, all of them. */
export function enforceable(limits: Limits, kernel: KernelLimits | undefined): Limits {
  if (kernel === undefined) return limits
  return {
    nanoCPUs: kernel.cpuCfsQuota ? limits.nanoCPUs : 0,
    memoryBytes: kernel.memoryLimit ? limits.memoryBytes : 0,
    pids: kernel.pidsLimit ? limits.pids : 0,
  }
}

/** A pod that is to be guarded by AppArmor must not run without it. In the kubelet's words. */
export function appArmorRefusal({ spec }: Pod, kernel: KernelLimits | undefined) {
  if (kernel?.appArmor !== false) return undefined
  const all = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])]
  const profiles = [spec.securityContext, ...all.map((one) => one.securityContext)].map((one) => one?.appArmorProfile)
  if (!profiles.some((profile) => profile !== undefined && profile.type !== 'Unconfined')) return undefined
  return { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host' }
}

/** How to have them enforced after all: what a Raspberry Pi's kernel is to be told. */
const remedy =
  'to enforce it, append cgroup_enable=memory cgroup_memory=1 to the line in /boot/firmware/cmdline.txt (or /boot/cmdline.txt) and reboot the node'

/** `limits`: what was asked for. */
export function unenforcedEvents(limits: Limits, kernel: KernelLimits | undefined): readonly PodEvent[] {
  const left = enforceable(limits, kernel)
  const told = (reason: string, message: string): PodEvent => ({ type: 'Warning', reason, message })
  return [
    ...(left.memoryBytes === limits.memoryBytes
      ? []
      : [
          told('MemoryLimitNotEnforced', `The kernel of this node has no memory cgroup, so no memory limit; ${remedy}`),
        ]),
    ...(left.nanoCPUs === limits.nanoCPUs
      ? []
      : [told('CPULimitNotEnforced', 'The kernel of this node cannot limit CPU time: it lacks CONFIG_CFS_BANDWIDTH')]),
    ...(left.pids === limits.pids
      ? []
      : [told('PIDLimitNotEnforced', 'The kernel of this node has no pids cgroup, so no limit of processes')]),
  ]
}
