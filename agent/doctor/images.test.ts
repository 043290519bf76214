import { test } from 'tap'
import { imageFindings } from './images.ts'

test('a damaged image is named with the file and the remedy', (t) => {
  const damaged = [{ name: 'busy:1', damage: 'the file "/bin/sh" has 0 of 9 bytes' }]
  t.match(imageFindings({ images: 3, checked: 3, damaged }), [
    {
      check: 'docker-images',
      verdict: 'problem',
      found: 'The image busy:1 is damaged on this machine: the file "/bin/sh" has 0 of 9 bytes',
      remedy: /docker image rm --force busy:1/,
    },
  ])
  t.end()
})

test('images in order, and how many were not checked', (t) => {
  t.match(imageFindings({ images: 3, checked: 3, damaged: [] }), [
    { verdict: 'ok', found: 'The files of 3 images are as Docker unpacked them' },
  ])
  t.match(imageFindings({ images: 5, checked: 3, damaged: [] }), [
    { verdict: 'ok', found: /; 2 were not checked in time$/ },
  ])
  t.end()
})
