import { test } from 'tap'
import { aNode, aPod } from '../../api/testing/builders.ts'
import { imageLocality, imageNames, imagesOf } from './image-locality.ts'
import { nodeInfo } from './node-usage.ts'

const mebibyte = 2 ** 20

/** The score of a node with images of these sizes, where each is on so many of ten nodes. */
function scored(pod: readonly string[], images: { readonly [name: string]: number }, carriers = 10): number {
  const listed = Object.entries(images).map(([name, size]) => ({ names: [name], sizeBytes: size * mebibyte }))
  const node = nodeInfo(aNode({ status: { ...aNode().status, images: listed } }))
  const containers = pod.map((image, index) => ({ name: `c${index}`, image }))
  return imageLocality(aPod({ containers }), (image) => (image in images ? carriers : 0), 10)(node)
}

test('a node is preferred by the size of its images, from 23 MiB to 1000 MiB for each container', async (t) => {
  const cases: readonly (readonly [title: string, score: number, ...Parameters<typeof scored>])[] = [
    ['no image', 0, ['app:1'], {}],
    ['another tag', 0, ['app:1'], { 'app:2': 500 }],
    ['a small image', 0, ['app:1'], { 'app:1': 23 }],
    ['half of it', 50, ['app:1'], { 'app:1': 512 }],
    ['a large image', 100, ['app:1'], { 'app:1': 1000 }],
    ['a larger image', 100, ['app:1'], { 'app:1': 5000 }],
    ['on half of the nodes', 24, ['app:1'], { 'app:1': 523 }, 5],
    ['on one node', 3, ['app:1'], { 'app:1': 600 }, 1],
    ['one of two images', 24, ['app:1', 'db:1'], { 'app:1': 512 }],
    ['both images', 50, ['app:1', 'db:1'], { 'app:1': 512, 'db:1': 500 }],
    ['two containers of one image', 50, ['app:1', 'app:1'], { 'app:1': 512 }],
  ]
  for (const [title, score, ...given] of cases) t.equal(scored(...given), score, title)
})

test('an image without a tag or a digest is that of the tag latest', async (t) => {
  const images = ['app', 'app:1', 'registry.example.com:5000/app', 'registry.example.com:5000/app:1', 'app@sha256:0']
  const pod = aPod({ containers: images.map((image, index) => ({ name: `c${index}`, image })) })
  t.same(imagesOf(pod), [
    'app:latest',
    'app:1',
    'registry.example.com:5000/app:latest',
    'registry.example.com:5000/app:1',
    'app@sha256:0',
  ])
  const initContainers = [{ name: 'i', image: 'init' }]
  t.same(imagesOf(aPod({ image: 'app', spec: { initContainers } })), ['init:latest', 'app:latest'])
})

test('the names of images are listed once', async (t) => {
  const images = [{ names: ['a:1', 'a:latest'], sizeBytes: 1 }, { names: ['a:1'], sizeBytes: 2 }, { sizeBytes: 3 }]
  t.same([...imageNames(images)], ['a:1', 'a:latest'])
  t.equal(imageNames().size, 0)
})
