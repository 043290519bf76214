/** Whether a change of a pod is judged at all (isSignificantPodUpdate in pod-security-admission/admission/admission.go). */
import type { Container, PodSpec } from '../pod.ts'

/** Another number of containers, another image, or a new ephemeral container. Nothing else that matters can change. */
export function isSignificantPodUpdate(old: PodSpec, now: PodSpec): boolean {
  const debuggers = new Map((old.ephemeralContainers ?? []).map((container) => [container.name, container]))
  return (
    haveOtherImages(old.containers, now.containers) ||
    haveOtherImages(old.initContainers ?? [], now.initContainers ?? []) ||
    (now.ephemeralContainers ?? []).some((container) => {
      const before = debuggers.get(container.name)
      return before === undefined || before.image !== container.image
    })
  )
}

function haveOtherImages(old: readonly Container[], now: readonly Container[]): boolean {
  return old.length !== now.length || now.some(({ image }, index) => image !== old[index]?.image)
}
