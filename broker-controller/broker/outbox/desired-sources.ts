/**
 * Follows the objects from which the message of a node is made: Nodes, pods, ConfigMaps, Secrets, RuntimeClasses, Services, claims,
 * volumes, CSI drivers and attachments.
 */
import type { ObjectMeta } from '../../../api/meta.ts'
import type { ServiceLink } from '../../../api/network/service-links.ts'
import { isForOnePod } from '../../../api/storage/pod-claims.ts'
import type { Loop } from '../../../daemon/run.ts'
import { type InformerNeeds, informer, keyFrom, keyText } from '../../store/informer.ts'
import { podsByNode } from '../../store/pods-by-node.ts'
import type { StoredObject } from '../../store/store.ts'
import { claimUsersIndex } from './claim-users.ts'
import { csiObjects } from './csi/csi-objects.ts'
import { isOtherNode } from './desired-content.ts'
import { linkedServicesIndex } from './linked-services.ts'
import type { NodeClaimSources } from './node-claims.ts'
import { type ReferencedData, referencedDataIndex } from './referenced-data.ts'
import { shareSecretsIndex } from './share-secrets.ts'

export interface DesiredSources extends Omit<NodeClaimSources, 'node' | 'recordOf'> {
  node(name: string): StoredObject<'nodes'> | undefined
  nodeNames(): readonly string[]
  /** The pods bound to this node. */
  podsOf(node: string): readonly StoredObject<'pods'>[]
  /** `key`: `namespace/name`. */
  configMap(key: string): StoredObject<'configmaps'> | undefined
  secret(key: string): StoredObject<'secrets'> | undefined
  runtimeClass(name: string): StoredObject<'runtimeclasses'> | undefined
  servicesIn(namespace: string): readonly ServiceLink[]
  /** Resolves when all objects have been read once, or when the loops stop before that. */
  readonly listed: Promise<unknown>
  readonly loops: readonly Loop[]
}

/** `changed` is called with the name of a node whose message may have changed, and the cause. */
export function desiredSources(
  needs: InformerNeeds,
  changed: (node: string, because: 'node' | 'content') => void,
): DesiredSources {
  const pods = podsByNode()
  const references = referencedDataIndex()
  const services = linkedServicesIndex()
  const claimOf = (key: string) => claimLoop.get(keyFrom(key))
  const claimUsers = claimUsersIndex((key) => {
    const claim = claimOf(key)
    return claim !== undefined && isForOnePod(claim)
  })
  const nodeLoop = informer(needs, 'nodes', (present, previous) => {
    const name = (present ?? previous)?.metadata.name
    if (name === undefined) return
    if (isOtherNode(present, previous)) changed(name, 'node')
    else if (claimUsers.mayMove(name, present, previous)) changed(name, 'content')
  })
  const podLoop = informer(needs, 'pods', (present, previous) => {
    pods.update(present, previous)
    references.update(present, previous)
    services.updatePod(present, previous)
    const others = claimUsers.update(present, previous)
    for (const node of new Set([present?.spec.nodeName, previous?.spec.nodeName, ...others])) {
      if (node) changed(node, 'content')
    }
  })
  const dataChanged = (kind: keyof ReferencedData, metadata: ObjectMeta | undefined) => {
    for (const node of references.nodesReferencing(kind, keyText(metadata ?? {}))) changed(node, 'content')
  }
  const configMapLoop = informer(needs, 'configmaps', (present, previous) =>
    dataChanged('configMaps', (present ?? previous)?.metadata),
  )
  const secretLoop = informer(needs, 'secrets', (present, previous) => {
    const { metadata } = present ?? previous ?? {}
    dataChanged('secrets', metadata)
    for (const key of shareSecrets.claimsWith(keyText(metadata ?? {}))) claimChanged(key)
  })
  const podsChanged = (hasChanged: (pod: StoredObject<'pods'>) => boolean) => {
    for (const node of pods.nodeNames()) if (pods.of(node).some(hasChanged)) changed(node, 'content')
  }
  // A class exists before its pods, and its handler never changes; one that is created again after them is rare.
  const classLoop = informer(needs, 'runtimeclasses', (present, previous) => {
    const name = (present ?? previous)?.metadata.name
    podsChanged(({ spec }) => spec.runtimeClassName === name)
  })
  const serviceLoop = informer(needs, 'services', (present, previous) => {
    for (const node of services.updateService(present, previous)) changed(node, 'content')
  })
  const claimChanged = (key: string) => {
    for (const node of claimUsers.nodesUsing(key)) changed(node, 'content')
  }
  const claimLoop = informer(needs, 'persistentvolumeclaims', (present, previous) =>
    claimChanged(keyText((present ?? previous)?.metadata ?? {})),
  )
  const shareSecrets = shareSecretsIndex()
  const volumeLoop = informer(needs, 'persistentvolumes', (present, previous) => {
    shareSecrets.update(present, previous)
    for (const { claimRef } of [present?.spec ?? {}, previous?.spec ?? {}]) {
      if (claimRef !== undefined) claimChanged(keyText(claimRef))
    }
  })
  const csi = csiObjects(needs, {
    driverChanged(name) {
      podsChanged(({ spec }) => (spec.volumes ?? []).some(({ csi: inline }) => inline?.driver === name))
      for (const { spec } of volumeLoop.all()) {
        if (spec?.csi?.driver === name && spec?.claimRef !== undefined) claimChanged(keyText(spec.claimRef))
      }
    },
    attachmentChanged: (node) => changed(node, 'content'),
  })
  return {
    node: (name) => nodeLoop.get({ namespace: '', name }),
    nodeNames: () => [...nodeLoop.all()].map(({ metadata }) => metadata.name),
    podsOf: (node) => pods.of(node),
    configMap: (key) => configMapLoop.get(keyFrom(key)),
    secret: (key) => secretLoop.get(keyFrom(key)),
    runtimeClass: (name) => classLoop.get({ namespace: '', name }),
    servicesIn: services.servicesIn,
    claim: claimOf,
    volume: (name) => volumeLoop.get({ namespace: '', name }),
    ...{ csiDriver: csi.csiDriver, attachment: csi.attachment },
    podsUsing: claimUsers.podsUsing,
    listed: Promise.all([
      ...[nodeLoop, podLoop, configMapLoop, secretLoop, classLoop].map(({ listed }) => listed),
      ...[serviceLoop, claimLoop, volumeLoop, csi].map(({ listed }) => listed),
    ]),
    loops: [
      { name: 'node-outbox-nodes', run: nodeLoop.run },
      { name: 'node-outbox-pods', run: podLoop.run },
      { name: 'node-outbox-configmaps', run: configMapLoop.run },
      { name: 'node-outbox-secrets', run: secretLoop.run },
      { name: 'node-outbox-runtimeclasses', run: classLoop.run },
      { name: 'node-outbox-services', run: serviceLoop.run },
      { name: 'node-outbox-claims', run: claimLoop.run },
      { name: 'node-outbox-volumes', run: volumeLoop.run },
      ...csi.loops,
    ],
  }
}
