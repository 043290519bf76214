/** JSONSchemaProps as protobuf carries it (generated.proto of apiextensions/v1). `readJSONSchema` judges what is read. */
import {
  bool,
  decodedLaterFrom,
  double,
  field,
  integer,
  lastField,
  list,
  mapOf,
  object,
  optional,
  pointer,
  rawJson,
  type TSchema,
  text,
} from '../schema.ts'
import type { JSONSchemaProps, ValidationRule } from './json-schema-props.ts'

/** A schema, which has others in it: its message is made with the first one that is read. */
export const schemaInMessage = decodedLaterFrom(() => schemaMessage())

const schemas = optional(list(schemaInMessage))
const namedSchemas = optional(mapOf(schemaInMessage))
const inner = { schema: pointer(1, optional(schemaInMessage)) }
const schemaOrList = optional(lastField(object({ ...inner, jSONSchemas: field(2, schemas) })))
const schemaOrNames = lastField(object({ ...inner, property: field(2, optional(list(text))) }))
const schemaOrBool = optional(
  lastField(object({ allows: pointer(1, optional(bool)), schema: pointer(2, optional(schemaInMessage)) })),
)

const ruleFields = {
  rule: field(1, optional(text)),
  message: field(2, optional(text)),
  messageExpression: field(3, optional(text)),
  reason: pointer(4, optional(text)),
  fieldPath: field(5, optional(text)),
  optionalOldSelf: pointer(6, optional(bool)),
} satisfies { readonly [Field in keyof Required<ValidationRule>]: TSchema }

let made: TSchema | undefined

function schemaMessage(): TSchema {
  made ??= object(keywords)
  return made
}

const keywords = {
  id: field(1, optional(text)),
  $schema: field(2, optional(text)),
  $ref: pointer(3, optional(text)),
  description: field(4, optional(text)),
  type: field(5, optional(text)),
  format: field(6, optional(text)),
  title: field(7, optional(text)),
  default: pointer(8, optional(rawJson)),
  maximum: pointer(9, optional(double)),
  exclusiveMaximum: field(10, optional(bool)),
  minimum: pointer(11, optional(double)),
  exclusiveMinimum: field(12, optional(bool)),
  maxLength: pointer(13, optional(integer)),
  minLength: pointer(14, optional(integer)),
  pattern: field(15, optional(text)),
  maxItems: pointer(16, optional(integer)),
  minItems: pointer(17, optional(integer)),
  uniqueItems: field(18, optional(bool)),
  multipleOf: pointer(19, optional(double)),
  enum: field(20, optional(list(rawJson))),
  maxProperties: pointer(21, optional(integer)),
  minProperties: pointer(22, optional(integer)),
  required: field(23, optional(list(text))),
  items: pointer(24, schemaOrList),
  allOf: field(25, schemas),
  oneOf: field(26, schemas),
  anyOf: field(27, schemas),
  not: pointer(28, optional(schemaInMessage)),
  properties: field(29, namedSchemas),
  additionalProperties: pointer(30, schemaOrBool),
  patternProperties: field(31, namedSchemas),
  dependencies: field(32, optional(mapOf(schemaOrNames))),
  additionalItems: pointer(33, schemaOrBool),
  definitions: field(34, namedSchemas),
  externalDocs: pointer(35, optional(object({ description: field(1, optional(text)), url: field(2, optional(text)) }))),
  example: pointer(36, optional(rawJson)),
  nullable: field(37, optional(bool)),
  'x-kubernetes-preserve-unknown-fields': pointer(38, optional(bool)),
  'x-kubernetes-embedded-resource': field(39, optional(bool)),
  'x-kubernetes-int-or-string': field(40, optional(bool)),
  'x-kubernetes-list-map-keys': field(41, optional(list(text))),
  'x-kubernetes-list-type': pointer(42, optional(text)),
  'x-kubernetes-map-type': pointer(43, optional(text)),
  'x-kubernetes-validations': field(44, optional(list(object(ruleFields)))),
} satisfies { readonly [Keyword in keyof Required<JSONSchemaProps>]: TSchema }
