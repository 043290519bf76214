import { test } from 'tap'
import { descriptionHash, resourcesInGroups, resourcesInList } from './extension-documents.ts'

const wardle = { group: 'wardle.example.com', version: 'v1' }

test('an aggregated list is read for its own version, with known fields only', (t) => {
  const resources = [
    {
      resource: 'flunders',
      responseKind: { group: 'wardle.example.com', version: 'v1', kind: 'Flunder' },
      scope: 'Namespaced',
      verbs: ['get', 'list'],
      evil: { a: 1 },
      subresources: [{ subresource: 'status', verbs: ['get'] }],
    },
    { resource: 'fischers' },
  ]
  const document = {
    items: [
      { metadata: { name: 'apps' }, versions: [{ version: 'v1', resources: [{ resource: 'deployments' }] }] },
      {
        metadata: { name: 'wardle.example.com' },
        versions: [{ version: 'v2' }, { version: 'v1', freshness: 'Current', resources }],
      },
    ],
  }
  const found = resourcesInGroups(document, wardle)
  t.match(found, [{ resource: 'flunders', subresources: [{ subresource: 'status' }] }, { responseKind: {} }])
  t.notMatch(found, [{ evil: {} }])
  t.equal(found?.length, 2)
  t.equal(resourcesInGroups(document, { group: 'batch', version: 'v1' }), undefined)
  for (const odd of [undefined, null, 1, [], { items: 1 }, { items: [{ versions: [1] }] }, {}]) {
    t.equal(resourcesInGroups(odd, wardle), undefined)
  }
  t.end()
})

test('a list of one version is read as the aggregated form has it', (t) => {
  const document = {
    resources: [
      { name: 'flunders', singularName: 'flunder', namespaced: true, kind: 'Flunder', verbs: ['get'] },
      { name: 'flunders/scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: ['update'] },
    ],
  }
  t.same(resourcesInList(document, wardle), [
    {
      resource: 'flunders',
      responseKind: { ...wardle, kind: 'Flunder' },
      scope: 'Namespaced',
      singularResource: 'flunder',
      verbs: ['get'],
      subresources: [
        {
          subresource: 'scale',
          responseKind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
          verbs: ['update'],
        },
      ],
    },
  ])
  t.equal(resourcesInList({ resources: [{ name: 5 }] }, wardle), undefined)
  t.equal(resourcesInList({ kind: 'Status' }, wardle), undefined)
  t.end()
})

test('no more than 500 kinds of a server are passed on', (t) => {
  const resources = Array.from({ length: 2_000 }, (_, i) => ({ name: `r${i}` }))
  t.equal(resourcesInList({ resources }, wardle)?.length, 500)
  t.end()
})

test('of an index of descriptions the hash of one version is taken, and nothing that could be another path', (t) => {
  const index = (serverRelativeURL?: string) => ({ paths: { 'apis/wardle.example.com/v1': { serverRelativeURL } } })
  t.equal(descriptionHash(index('/openapi/v3/apis/wardle.example.com/v1?hash=AB12'), wardle), 'AB12')
  t.equal(descriptionHash(index('https://evil.example.com/?hash=a&b=c'), wardle), 'a')
  t.equal(descriptionHash(index(), wardle), '')
  t.equal(descriptionHash({ paths: {} }, wardle), undefined)
  t.equal(descriptionHash('x', wardle), undefined)
  t.end()
})
