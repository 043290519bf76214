import { test } from 'tap'
import { mostProblems } from '../../../api/problem.ts'
import { duplicateFields } from './duplicate-fields.ts'

const found = (text: string) => duplicateFields(Buffer.from(text))

test('a field that stands twice in its object is named by its path, once', async (t) => {
  t.same(found('{"a":1,"b":2}'), [])
  t.same(found('{"a":1,"a":2}'), ['a'])
  t.same(found('{"a":1,"a":2,"a":3,"b":0,"b":0}'), ['a', 'b'])
  t.same(found(' { "spec" : { "replicas" : 2 , "replicas" : 3 } } '), ['spec.replicas'])
  t.same(found('{"spec":{"list":[{"x":1},{"x":1,"y":[[],{"z":1,"z":{}}],"x":2}]}}'), [
    'spec.list[1].y[1].z',
    'spec.list[1].x',
  ])
  t.same(found('[1,{"a":1,"a":1}]'), ['[1].a'])
})

test('the same name in other objects, and as a value, is not a duplicate', async (t) => {
  t.same(found('{"a":{"a":{"a":"a"}},"b":["a","a",{"a":1},{"a":1}]}'), [])
  t.same(found('{"a":"b","c":"a","d":"a\\",\\"a\\":1"}'), [])
  t.same(found('"a"'), [])
  t.same(found('{}'), [])
})

test('an object that is given twice is looked into both times', async (t) => {
  t.same(found('{"a":{"b":1},"a":{"b":1}}'), ['a'])
  t.same(found('{"a":{"b":1,"b":2},"a":{"b":1}}'), ['a.b', 'a'])
})

test('a name is the same however it is escaped', async (t) => {
  t.same(found('{"a":1,"\\u0061":2}'), ['a'])
  t.same(found('{"a\\"b":1,"a\\"b":2}'), ['a"b'])
  t.same(found('{"ä":1,"ä":2,"__proto__":1,"__proto__":2}'), ['ä', '__proto__'])
})

test('at most as many are named as there can be problems of one object', async (t) => {
  const fields = Array.from({ length: mostProblems + 10 }, (_, index) => `"f${index}":1`).join()
  t.equal(found(`{${fields},${fields}}`).length, mostProblems)
})

test('a long path is cut', async (t) => {
  const long = 'k'.repeat(1000)
  t.same(found(`{"${long}":{"a":1,"a":2,"b":1,"b":2}}`), ['k'.repeat(512)])
})
