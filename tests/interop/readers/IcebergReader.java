// Reads Iceberg tables with Iceberg's own Java library, without Spark.
//
// Takes a file with requests, one per line: metadata location, column, operator, value and output, with tabs between.
// Writes the rows as lines of JSON arrays, whose values have the form that matrix.py calls canonical.

import java.io.BufferedWriter;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

public class IcebergReader {
  private static final LocalDateTime EPOCH = LocalDateTime.of(1970, 1, 1, 0, 0);

  public static void main(String[] arguments) throws Exception {
    HadoopFileIO io = new HadoopFileIO(new Configuration());
    for (String line : Files.readAllLines(Path.of(arguments[0]))) {
      String[] request = line.split("\t", -1);
      Table table = new BaseTable(new StaticTableOperations(request[0], io), "t");
      Expression condition = condition(table, request[1], request[2], request[3]);
      try (BufferedWriter out = Files.newBufferedWriter(Path.of(request[4]));
          CloseableIterable<Record> rows = IcebergGenerics.read(table).where(condition).build()) {
        for (Record row : rows) {
          out.write(struct(row, table.schema().asStruct()));
          out.newLine();
        }
      } catch (Exception error) {
        Files.writeString(Path.of(request[4] + ".error"), error.toString());
      }
    }
  }

  private static Expression condition(Table table, String column, String operator, String value) {
    switch (operator) {
      case "":
        return Expressions.alwaysTrue();
      case "null":
        return Expressions.isNull(column);
      case "not null":
        return Expressions.notNull(column);
      case "nan":
        return Expressions.isNaN(column);
      case "=":
        return Expressions.equal(column, literal(table.schema().findType(column), value));
      default:
        // The library's own reader takes nulls for less than all values.
        return Expressions.and(
            Expressions.notNull(column),
            Expressions.lessThan(column, literal(table.schema().findType(column), value)));
    }
  }

  private static Object literal(Type type, String text) {
    switch (type.typeId()) {
      case BOOLEAN:
        return Boolean.valueOf(text);
      case INTEGER:
      case LONG:
        return Long.valueOf(text);
      case FLOAT:
        return Float.valueOf(text);
      case DOUBLE:
        return Double.valueOf(text);
      case FIXED:
      case BINARY:
        return ByteBuffer.wrap(HexFormat.of().parseHex(text));
      case UUID:
        return UUID.fromString(text);
      default:
        return text;
    }
  }

  private static String struct(StructLike row, Types.StructType type) {
    List<String> values = new ArrayList<>();
    for (int i = 0; i < type.fields().size(); i++) {
      values.add(value(row.get(i, Object.class), type.fields().get(i).type()));
    }
    return "[" + String.join(",", values) + "]";
  }

  private static String value(Object value, Type type) {
    if (value == null) {
      return "null";
    }
    switch (type.typeId()) {
      case STRUCT:
        return struct((StructLike) value, type.asStructType());
      case LIST:
        List<String> items = new ArrayList<>();
        for (Object item : (List<?>) value) {
          items.add(value(item, type.asListType().elementType()));
        }
        return "[" + String.join(",", items) + "]";
      case MAP:
        List<String> pairs = new ArrayList<>();
        for (Map.Entry<?, ?> pair : ((Map<?, ?>) value).entrySet()) {
          String key = value(pair.getKey(), type.asMapType().keyType());
          pairs.add("[" + key + "," + value(pair.getValue(), type.asMapType().valueType()) + "]");
        }
        Collections.sort(pairs);
        return "[" + String.join(",", pairs) + "]";
      case BOOLEAN:
        return quoted((Boolean) value ? "True" : "False");
      case FLOAT:
        return quoted(bits(((Float) value).doubleValue()));
      case DOUBLE:
        return quoted(bits((Double) value));
      case UUID:
        return quoted(value.toString().replace("-", ""));
      case FIXED:
        return quoted(HexFormat.of().formatHex((byte[]) value));
      case BINARY:
        ByteBuffer buffer = ((ByteBuffer) value).duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return quoted(HexFormat.of().formatHex(bytes));
      case TIMESTAMP:
        LocalDateTime moment =
            value instanceof OffsetDateTime
                ? ((OffsetDateTime) value).withOffsetSameInstant(ZoneOffset.UTC).toLocalDateTime()
                : (LocalDateTime) value;
        return Long.toString(ChronoUnit.MICROS.between(EPOCH, moment));
      case TIME:
        return quoted(((LocalTime) value).toString());
      case DATE:
        return quoted(((LocalDate) value).toString());
      default:
        return quoted(value.toString());
    }
  }

  private static String bits(double value) {
    return Double.isNaN(value) ? "nan" : String.format("%016x", Double.doubleToLongBits(value));
  }

  private static String quoted(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      out.append(c < ' ' || c > '~' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : c);
    }
    return out.append('"').toString();
  }
}
