/** The Events of attached volumes, in Kubernetes' words (reportMultiAttachError in pkg/controller/volume/attachdetach/reconciler). Pure. */

type Named = { readonly namespace: string; readonly name: string }

/** Names of pods in other namespaces are not for the author of this one. */
export function multiAttachMessage(volume: string, pod: Named, users: readonly Named[]): string {
  const local = users.filter(({ namespace }) => namespace === pod.namespace).map(({ name }) => name)
  const others = users.length - local.length
  const elsewhere = `${others} pod(s) in different namespaces`
  const names = `Volume is already used by pod(s) ${local.sort().join(', ')}`
  const why =
    users.length === 0
      ? "Volume is already exclusively attached to one node and can't be attached to another"
      : local.length === 0
        ? `Volume is already used by ${elsewhere}`
        : others === 0
          ? names
          : `${names} and ${elsewhere}`
  return `Multi-Attach error for volume "${volume}" ${why}`
}

/** With the space at its end. */
export function attachedMessage(volume: string): string {
  return `AttachVolume.Attach succeeded for volume "${volume}" `
}

export function notAttachedMessage(volume: string, why: string): string {
  return `AttachVolume.Attach failed for volume "${volume}" : ${why}`
}

export function attachTimeout({ driver, handle }: { readonly driver: string; readonly handle: string }): string {
  return `timed out waiting for external-attacher of ${driver} CSI driver to attach volume ${handle}`
}
