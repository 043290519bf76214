/** The tokens that a pod's CSI drivers ask for (validateAudience of plugin/pkg/admission/noderestriction in 1.33). */
import type { Pod } from '../../../../api/pod.ts'
import { claimsOfPod } from '../../../../api/storage/pod-claims.ts'
import type { Store } from '../../../store/store.ts'

/** The audiences in `tokenRequests` of the CSIDrivers of its volumes: inline ones, and those of its claims. */
export async function driverAudiences(pod: Pod, store: Pick<Store, 'get'>): Promise<ReadonlySet<string>> {
  const audiences = new Set<string>()
  for (const name of await driversOf(pod, store)) {
    const driver = await store.get('csidrivers', { namespace: '', name })
    for (const { audience } of driver?.spec?.tokenRequests ?? []) audiences.add(audience)
  }
  return audiences
}

async function driversOf(pod: Pod, store: Pick<Store, 'get'>): Promise<ReadonlySet<string>> {
  const { namespace = 'default' } = pod.metadata
  const drivers = new Set((pod.spec.volumes ?? []).flatMap(({ csi }) => csi?.driver ?? []))
  for (const { name } of claimsOfPod(pod)) {
    const claim = await store.get('persistentvolumeclaims', { namespace, name })
    const { volumeName = '' } = claim?.spec ?? {}
    const volume =
      volumeName === '' ? undefined : await store.get('persistentvolumes', { namespace: '', name: volumeName })
    if (volume?.spec?.csi !== undefined) drivers.add(volume.spec.csi.driver)
  }
  return drivers
}
