import { test } from 'tap'
import { aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { shareSecretsIndex } from './share-secrets.ts'

const smb = (secret: string, claim: string | undefined = 'data', name = 'pv') =>
  aStoredVolume(name, {
    spec: {
      csi: {
        ...{ driver: 'smb.bramble.dev', volumeHandle: name, volumeAttributes: { source: '//192.0.2.5/share' } },
        nodeStageSecretRef: { namespace: 'nas', name: secret },
      },
      ...(claim !== '' && { claimRef: claimRefTo(claim) }),
    },
  })

test('a Secret concerns the claims of the volumes that need it on their node', async (t) => {
  const { update, claimsWith } = shareSecretsIndex()
  update(smb('user'), undefined)
  update(smb('user', 'logs', 'pv-2'), undefined)
  t.same(claimsWith('nas/user'), ['default/data', 'default/logs'])
  t.same([claimsWith('nas/other'), claimsWith('default/user')], [[], []])
  update(smb('other'), smb('user'))
  t.same([claimsWith('nas/user'), claimsWith('nas/other')], [['default/logs'], ['default/data']])
  update(smb('other', 'moved'), smb('other'))
  t.same(claimsWith('nas/other'), ['default/moved'])
  update(smb('other', ''), smb('other', 'moved'))
  t.same(claimsWith('nas/other'), [], 'it is for no claim')
  update(undefined, smb('user', 'logs', 'pv-2'))
  t.same(claimsWith('nas/user'), [])
})

test('a CSI driver has up to three Secrets on a node; those of the controller are not sent', async (t) => {
  const at = (name: string) => ({ namespace: 'csi', name })
  const csi = {
    ...{ driver: 'disk.example.com', volumeHandle: 'v', nodeStageSecretRef: at('stage') },
    ...{ nodePublishSecretRef: at('publish'), nodeExpandSecretRef: at('expand') },
    ...{ controllerPublishSecretRef: at('attach'), controllerExpandSecretRef: at('grow') },
  }
  const { update, claimsWith } = shareSecretsIndex()
  update(aStoredVolume('pv', { spec: { csi, claimRef: claimRefTo('data') } }), undefined)
  for (const name of ['stage', 'publish', 'expand']) t.same(claimsWith(`csi/${name}`), ['default/data'], name)
  for (const name of ['attach', 'grow']) t.same(claimsWith(`csi/${name}`), [], name)
})

test('a share or a folder without a user concerns no Secret', async (t) => {
  const { update, claimsWith } = shareSecretsIndex()
  const nfs = { server: '192.0.2.5', path: '/export' }
  update(aStoredVolume('pv', { spec: { nfs, claimRef: claimRefTo('data') } }), undefined)
  update(aStoredVolume('pv-2', { spec: { claimRef: claimRefTo('data') } }), undefined)
  t.same(claimsWith('/'), [])
})
