/** core/v1 PersistentVolumeSource: where the data of a PersistentVolume is. A volume has one of these. */
import { ObjectReferenceSchema } from '../meta.ts'
import { atomic, bool, field, inside, integer, list, mapOf, object, optional, pointer, text } from '../schema.ts'

const anyText = optional(text)
const readOnly = optional(bool)
const names = optional(list(text))

const secretRef = optional(
  atomic(object('core.v1.SecretReference', { name: field(1, anyText), namespace: field(2, anyText) })),
)

export const NFSVolumeSourceSchema = object('core.v1.NFSVolumeSource', {
  server: field(1, text),
  path: field(2, text),
  readOnly: field(3, readOnly),
})

const sources = {
  gcePersistentDisk: field(
    1,
    optional(
      object('core.v1.GCEPersistentDiskVolumeSource', {
        pdName: field(1, text),
        fsType: field(2, anyText),
        partition: field(3, optional(integer)),
        readOnly: field(4, readOnly),
      }),
    ),
  ),
  awsElasticBlockStore: field(
    2,
    optional(
      object('core.v1.AWSElasticBlockStoreVolumeSource', {
        volumeID: field(1, text),
        fsType: field(2, anyText),
        partition: field(3, optional(integer)),
        readOnly: field(4, readOnly),
      }),
    ),
  ),
  hostPath: field(
    3,
    optional(object('core.v1.HostPathVolumeSource', { path: field(1, text), type: pointer(2, anyText) })),
  ),
  glusterfs: field(
    4,
    optional(
      object('core.v1.GlusterfsPersistentVolumeSource', {
        endpoints: field(1, text),
        path: field(2, text),
        readOnly: field(3, readOnly),
        endpointsNamespace: pointer(4, anyText),
      }),
    ),
  ),
  nfs: field(5, optional(NFSVolumeSourceSchema)),
  rbd: field(
    6,
    optional(
      object('core.v1.RBDPersistentVolumeSource', {
        monitors: field(1, list(text)),
        image: field(2, text),
        fsType: field(3, anyText),
        pool: field(4, anyText),
        user: field(5, anyText),
        keyring: field(6, anyText),
        secretRef: field(7, secretRef),
        readOnly: field(8, readOnly),
      }),
    ),
  ),
  iscsi: field(
    7,
    optional(
      object('core.v1.ISCSIPersistentVolumeSource', {
        targetPortal: field(1, text),
        iqn: field(2, text),
        lun: field(3, optional(integer)),
        iscsiInterface: field(4, anyText),
        fsType: field(5, anyText),
        readOnly: field(6, readOnly),
        portals: field(7, names),
        chapAuthDiscovery: field(8, readOnly),
        secretRef: field(10, secretRef),
        chapAuthSession: field(11, readOnly),
        initiatorName: pointer(12, anyText),
      }),
    ),
  ),
  cinder: field(
    8,
    optional(
      object('core.v1.CinderPersistentVolumeSource', {
        volumeID: field(1, text),
        fsType: field(2, anyText),
        readOnly: field(3, readOnly),
        secretRef: field(4, secretRef),
      }),
    ),
  ),
  cephfs: field(
    9,
    optional(
      object('core.v1.CephFSPersistentVolumeSource', {
        monitors: field(1, list(text)),
        path: field(2, anyText),
        user: field(3, anyText),
        secretFile: field(4, anyText),
        secretRef: field(5, secretRef),
        readOnly: field(6, readOnly),
      }),
    ),
  ),
  fc: field(
    10,
    optional(
      object('core.v1.FCVolumeSource', {
        targetWWNs: field(1, names),
        lun: pointer(2, optional(integer)),
        fsType: field(3, anyText),
        readOnly: field(4, readOnly),
        wwids: field(5, names),
      }),
    ),
  ),
  flocker: field(
    11,
    optional(object('core.v1.FlockerVolumeSource', { datasetName: field(1, anyText), datasetUUID: field(2, anyText) })),
  ),
  flexVolume: field(
    12,
    optional(
      object('core.v1.FlexPersistentVolumeSource', {
        driver: field(1, text),
        fsType: field(2, anyText),
        secretRef: field(3, secretRef),
        readOnly: field(4, readOnly),
        options: field(5, optional(mapOf(text))),
      }),
    ),
  ),
  azureFile: field(
    13,
    optional(
      object('core.v1.AzureFilePersistentVolumeSource', {
        secretName: field(1, text),
        shareName: field(2, text),
        readOnly: field(3, readOnly),
        secretNamespace: pointer(4, anyText),
      }),
    ),
  ),
  vsphereVolume: field(
    14,
    optional(
      object('core.v1.VsphereVirtualDiskVolumeSource', {
        volumePath: field(1, text),
        fsType: field(2, anyText),
        storagePolicyName: field(3, anyText),
        storagePolicyID: field(4, anyText),
      }),
    ),
  ),
  quobyte: field(
    15,
    optional(
      object('core.v1.QuobyteVolumeSource', {
        registry: field(1, text),
        volume: field(2, text),
        readOnly: field(3, readOnly),
        user: field(4, anyText),
        group: field(5, anyText),
        tenant: field(6, anyText),
      }),
    ),
  ),
  azureDisk: field(
    16,
    optional(
      object('core.v1.AzureDiskVolumeSource', {
        diskName: field(1, text),
        diskURI: field(2, text),
        cachingMode: pointer(3, anyText),
        fsType: pointer(4, anyText),
        readOnly: pointer(5, readOnly),
        kind: pointer(6, anyText),
      }),
    ),
  ),
  photonPersistentDisk: field(
    17,
    optional(object('core.v1.PhotonPersistentDiskVolumeSource', { pdID: field(1, text), fsType: field(2, anyText) })),
  ),
  portworxVolume: field(
    18,
    optional(
      object('core.v1.PortworxVolumeSource', {
        volumeID: field(1, text),
        fsType: field(2, anyText),
        readOnly: field(3, readOnly),
      }),
    ),
  ),
  scaleIO: field(
    19,
    optional(
      object('core.v1.ScaleIOPersistentVolumeSource', {
        gateway: field(1, text),
        system: field(2, text),
        secretRef: field(3, secretRef),
        sslEnabled: field(4, readOnly),
        protectionDomain: field(5, anyText),
        storagePool: field(6, anyText),
        storageMode: field(7, anyText),
        volumeName: field(8, anyText),
        fsType: field(9, anyText),
        readOnly: field(10, readOnly),
      }),
    ),
  ),
  local: field(
    20,
    optional(object('core.v1.LocalVolumeSource', { path: field(1, text), fsType: pointer(2, anyText) })),
  ),
  storageos: field(
    21,
    optional(
      object('core.v1.StorageOSPersistentVolumeSource', {
        volumeName: field(1, anyText),
        volumeNamespace: field(2, anyText),
        fsType: field(3, anyText),
        readOnly: field(4, readOnly),
        secretRef: field(5, optional(ObjectReferenceSchema)),
      }),
    ),
  ),
  csi: field(
    22,
    optional(
      object('core.v1.CSIPersistentVolumeSource', {
        driver: field(1, text),
        volumeHandle: field(2, text),
        readOnly: field(3, readOnly),
        fsType: field(4, anyText),
        volumeAttributes: field(5, optional(mapOf(text))),
        controllerPublishSecretRef: field(6, secretRef),
        nodeStageSecretRef: field(7, secretRef),
        nodePublishSecretRef: field(8, secretRef),
        controllerExpandSecretRef: field(9, secretRef),
        nodeExpandSecretRef: field(10, secretRef),
      }),
    ),
  ),
}

/** JSON has the fields of the source inline in the specification of the volume; in protobuf they stand in its field 2. */
export const persistentVolumeSources = inside(2, sources)

/** In the order in which Kubernetes checks them (ValidatePersistentVolumeSpec). */
export const volumeSourceNames: readonly (keyof typeof sources)[] = [
  ...([
    'hostPath',
    'gcePersistentDisk',
    'awsElasticBlockStore',
    'glusterfs',
    'flocker',
    'nfs',
    'rbd',
    'quobyte',
  ] as const),
  ...(['cephfs', 'iscsi', 'cinder', 'fc', 'flexVolume', 'azureFile', 'vsphereVolume'] as const),
  ...(['photonPersistentDisk', 'portworxVolume', 'azureDisk', 'scaleIO', 'local', 'storageos', 'csi'] as const),
]
