import { test } from 'tap'
import type { StorageClass } from '../../../../api/storage/storage-class.ts'
import { causes, create, update } from '../../../testing/admitting.ts'

const storageClass = (more: Partial<StorageClass> = {}): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'fast' },
  provisioner: 'example.com/disk',
  ...more,
})

test('a class is defaulted, and what its volumes are made with stays', async (t) => {
  const made = create('storageclasses', storageClass())
  t.match(made, { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' })
  const wrong = (more: Partial<StorageClass>) => causes(() => create('storageclasses', storageClass(more)))
  t.same(wrong({ provisioner: '' }), ['provisioner: Required value'])
  t.same(wrong({ reclaimPolicy: 'Recycle' }), [
    'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
  ])
  t.same(wrong({ volumeBindingMode: 'Late' }), [
    'volumeBindingMode: Unsupported value: "Late": supported values: "Immediate", "WaitForFirstConsumer"',
  ])
  const many = Object.fromEntries(Array.from({ length: 513 }, (_, index) => [`p${index}`, '']))
  t.same(wrong({ parameters: many }), ['parameters: Too long: may not be more than 512 bytes'])
  t.same(wrong({ parameters: { '': 'a' } }), ['parameters: Invalid value: "": field can not be empty.'])
  const term = { matchLabelExpressions: [{ key: 'zone', values: ['a', 'a'] }] }
  t.same(wrong({ allowedTopologies: [term, term] }), [
    'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
    'allowedTopologies[1].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
    'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""',
  ])
  const changed = (more: Partial<StorageClass>) => causes(() => update('storageclasses', made, storageClass(more)))
  t.same(changed({ allowVolumeExpansion: true }), [])
  t.same(changed({ parameters: { a: 'b' }, provisioner: 'other', reclaimPolicy: 'Retain' }), [
    'parameters: Forbidden: updates to parameters are forbidden.',
    'provisioner: Forbidden: updates to provisioner are forbidden.',
    'reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.',
  ])
})

test('every wrong field of a class is named', async (t) => {
  const wrong = (more: Partial<StorageClass>) => causes(() => create('storageclasses', storageClass(more)))
  t.same(wrong({ provisioner: 'Example.com/Disk', parameters: {}, reclaimPolicy: 'Retain' }), [])
  t.match(wrong({ provisioner: 'a/b/c' }), [/^provisioner: Invalid value: "a\/b\/c"/])
  const most = Object.fromEntries(Array.from({ length: 512 }, (_, index) => [`p${index}`, '']))
  t.same(wrong({ parameters: most }), [])
  t.same(wrong({ parameters: { key: 'x'.repeat(256 * 1024 - 3) } }), [])
  t.same(wrong({ parameters: { key: `${'x'.repeat(256 * 1024 - 4)}é` } }), [
    'parameters: Too long: may not be more than 262144 bytes',
  ])
  const at = 'allowedTopologies[0].matchLabelExpressions'
  const topology = (
    ...matchLabelExpressions: readonly { readonly key: string; readonly values: readonly string[] }[]
  ) => wrong({ allowedTopologies: [{ matchLabelExpressions }] })
  t.same(topology({ key: 'zone', values: ['a', 'b'] }, { key: 'region', values: ['a'] }), [])
  t.match(topology({ key: '-', values: [] }, { key: '-', values: ['a'] }), [
    `${at}[0].values: Required value`,
    /^allowedTopologies\[0\].matchLabelExpressions\[0\].key: Invalid value: "-"/,
    /^allowedTopologies\[0\].matchLabelExpressions\[1\].key: Invalid value: "-"/,
    `${at}[1].key: Duplicate value: "-"`,
  ])
})

test('the topologies of a class differ, in whichever order they are written', async (t) => {
  const wrong = (...terms: NonNullable<StorageClass['allowedTopologies']>) =>
    causes(() => create('storageclasses', storageClass({ allowedTopologies: terms })))
  const [zone, region] = [
    { key: 'zone', values: ['a', 'b'] },
    { key: 'region', values: ['x'] },
  ]
  t.same(wrong({ matchLabelExpressions: [zone] }, { matchLabelExpressions: [region] }), [])
  t.same(wrong({ matchLabelExpressions: [zone] }, { matchLabelExpressions: [zone, region] }), [])
  t.same(wrong({ matchLabelExpressions: [{ ...zone, values: ['a'] }] }, { matchLabelExpressions: [zone] }), [])
  t.same(
    wrong(
      { matchLabelExpressions: [zone, region] },
      { matchLabelExpressions: [region, { ...zone, values: ['b', 'a'] }] },
    ),
    ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
  )
})

test('how the volumes of a class are bound stays', async (t) => {
  const made = create('storageclasses', storageClass({ parameters: { a: 'b' } }))
  const changed = (more: Partial<StorageClass>) => causes(() => update('storageclasses', made, storageClass(more)))
  t.same(changed({ parameters: { a: 'b' } }), [])
  t.same(changed({}), ['parameters: Forbidden: updates to parameters are forbidden.'])
  t.same(changed({ parameters: { a: 'b' }, volumeBindingMode: 'WaitForFirstConsumer' }), [
    'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
  ])
  t.same(changed({ parameters: { a: 'b' }, mountOptions: ['ro'], allowedTopologies: [] }), [])
})
